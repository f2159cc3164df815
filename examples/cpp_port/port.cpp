// Llama or Qwen3 in C++17, with nothing but the standard library: a port that is a command.
//
//   g++ -std=c++17 -O3 -o cpp_port examples/cpp_port/port.cpp
//   archc validate tiny --port-command './cpp_port {weights} {probes} {out}'
//
// It reads a Hugging Face checkpoint folder and a file of probes, and writes their logits, and activations on the way.
#include <cstdio>
#include <numeric>

#include "model.hpp"

namespace {

// A row of a probe's tensor [batch, tokens]; `otherwise` where the probe has none.
Whole row_of(const Tensors& given, const std::string& name, const Shape& shape, size_t row, Whole otherwise) {
    const auto found = given.find(name);
    if (found == given.end()) return otherwise;
    if (found->second.shape != shape || found->second.whole.empty())
        throw std::runtime_error(name + " is not as many whole numbers as there are tokens");
    const auto begin = found->second.whole.begin() + static_cast<int64_t>(row * shape[1]);
    return {begin, begin + static_cast<int64_t>(shape[1])};
}

// Adds a row's activations to those of a batch. archc has heads before tokens: [batch, heads, tokens, head_dim].
void add_row(Tensor& to, size_t batch, const Shape& shape, const Floats& row) {
    const size_t tokens = shape[0], heads = shape.size() == 3 ? shape[1] : 1, channels = shape.back();
    to.shape = shape.size() == 3 ? Shape{batch, heads, tokens, channels} : Shape{batch, tokens, channels};
    for (size_t head = 0; head < heads; ++head)
        for (size_t token = 0; token < tokens; ++token) {
            const float* from = &row[(token * heads + head) * channels];
            to.floats.insert(to.floats.end(), from, from + channels);
        }
}

// Runs the probe of that name, each row from an empty cache.
void answer(const Model& model, const Tensors& given, const std::string& probe, Tensors& answers) {
    const Shape& shape = given.at(probe + "/input_ids").shape;
    if (shape.size() != 2) throw std::runtime_error(probe + "/input_ids is not [batch, tokens]");
    Whole counted(shape[1]);
    std::iota(counted.begin(), counted.end(), 0);
    const auto chunks = given.find(probe + "/chunks");
    const auto end = static_cast<int64_t>(shape[1]);
    const Whole pieces = chunks == given.end() ? Whole{end} : chunks->second.whole;
    for (size_t row = 0; row < shape[0]; ++row) {
        const Whole ids = row_of(given, probe + "/input_ids", shape, row, {});
        const Whole positions = row_of(given, probe + "/position_ids", shape, row, counted);
        const Whole mask = row_of(given, probe + "/attention_mask", shape, row, Whole(shape[1], 1));
        const Watch watch = [&](const std::string& point, const Shape& sizes, const Floats& values) {
            if (chunks == given.end()) add_row(answers[probe + "/" + point], shape[0], sizes, values);
        };
        std::vector<Cache> cache(model.layers());
        Floats logits;
        int64_t at = 0;
        for (const int64_t piece : pieces) {
            if (piece < 1 || piece > end - at) throw std::runtime_error(probe + "/chunks: not the sum of the tokens");
            const auto part = [&](const Whole& all) { return Whole(all.begin() + at, all.begin() + at + piece); };
            const Floats more = model.run(part(ids), part(positions), mask, cache, watch);
            logits.insert(logits.end(), more.begin(), more.end());
            at += piece;
        }
        if (at != end) throw std::runtime_error(probe + "/chunks: not the sum of the tokens");
        add_row(answers[probe + "/logits"], shape[0], {shape[1], model.vocab()}, logits);
    }
}

}  // namespace

int main(int count, char** arguments) {
    try {
        if (count != 4) throw std::runtime_error("usage: cpp_port WEIGHTS PROBES OUT");
        const Model model(arguments[1]);
        Tensors given, answers;
        read_safetensors(arguments[2], given);
        for (const auto& [name, tensor] : given) {
            const size_t slash = name.rfind('/');
            if (slash != std::string::npos && name.substr(slash) == "/input_ids")
                answer(model, given, name.substr(0, slash), answers);
        }
        write_safetensors(arguments[3], answers);
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "cpp_port: %s\n", error.what());
        return 1;
    }
}
