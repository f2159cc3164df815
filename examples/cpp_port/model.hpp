// A decoder as Llama and Qwen3 have it: RMSNorm, rotary positions (plain, or scaled as in Llama 3), grouped heads,
// windows, a gated feed-forward; biases, norms on queries and keys and a head of its own where the checkpoint has them.
// It computes one row: the rows of a batch have nothing to do with one another.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>

#include "safetensors.hpp"

using Whole = std::vector<int64_t>;

struct Linear {
    size_t out, in;
    Floats weight, bias;  // [out, in]; [out] or nothing
};

struct Layer {
    Linear q, k, v, o, gate, up, down;
    Floats attention_norm, ffn_norm, q_norm, k_norm;  // [width], [width]; [head_dim] or nothing
    size_t window;                                    // 0: none
};

// Keys and values of a row in one layer, [positions, kv_heads, head_dim] each.
struct Cache {
    Floats keys, values;
};

// Is told activations by archc's name, as [tokens, width] or [tokens, heads, head_dim].
using Watch = std::function<void(const std::string&, const Shape&, const Floats&)>;

inline float dot(const float* a, const float* b, size_t n) {
    constexpr size_t kLanes = 16;  // sums that do not wait for each other are what a compiler can vectorise
    float sums[kLanes] = {}, sum = 0;
    size_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
        for (size_t lane = 0; lane < kLanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
    for (const float lane : sums) sum += lane;
    for (; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

class Model {
public:
    explicit Model(const std::filesystem::path& folder) {
        for (const auto& entry : std::filesystem::directory_iterator(folder))
            if (entry.path().extension() == ".safetensors") read_safetensors(entry.path(), stored_);
        const Json config = JsonReader::read(read_file(folder / "config.json"));
        const Json *type = config.find("model_type"), *activation = config.find("hidden_act");
        if (!type || (type->text != "llama" && type->text != "qwen3") || !activation || activation->text != "silu")
            throw std::runtime_error("this port knows llama and qwen3, with SiLU");
        vocab_ = size(config, "vocab_size");
        width_ = size(config, "hidden_size");
        heads_ = size(config, "num_attention_heads");
        kv_heads_ = size(config, "num_key_value_heads");
        head_dim_ = config.find("head_dim") ? size(config, "head_dim") : width_ / heads_;
        eps_ = static_cast<float>(number(config, "rms_norm_eps"));
        if (heads_ % kv_heads_ || head_dim_ % 2) throw std::runtime_error("config.json has heads that no model has");
        embedding_ = linear("model.embed_tokens", vocab_, width_);
        if (stored_.count("lm_head.weight")) head_ = linear("lm_head", vocab_, width_);
        norm_ = vector("model.norm.weight", width_);
        for (uint64_t n = 0; n < size(config, "num_hidden_layers"); ++n) layers_.push_back(layer(config, n));
        read_frequencies(config);
        stored_.clear();
    }

    size_t layers() const { return layers_.size(); }
    size_t vocab() const { return vocab_; }

    // Logits [tokens, vocab] of a row. The caches, one for each layer, hold what came before, and take these tokens up.
    // The mask is of cached and new tokens: 0 for padding, which nothing may read.
    Floats run(const Whole& ids, const Whole& positions, const Whole& mask, std::vector<Cache>& cache,
               const Watch& watch) const {
        const Shape shape{ids.size(), width_};
        Floats x;
        for (const int64_t id : ids) {
            if (id < 0 || static_cast<size_t>(id) >= vocab_) throw std::runtime_error("a token beyond the vocabulary");
            const float* row = &embedding_.weight[static_cast<size_t>(id) * width_];
            x.insert(x.end(), row, row + width_);
        }
        watch("embed", shape, x);
        for (size_t n = 0; n < layers_.size(); ++n) {
            const Layer& layer = layers_[n];
            const std::string at = "layers." + std::to_string(n) + ".";
            const auto show_q = [&](const Floats& q) { watch(at + "mixer.q", {ids.size(), heads_, head_dim_}, q); };
            const Floats mixed = attention(layer, normed(x, layer.attention_norm), positions, mask, cache[n], show_q);
            watch(at + "mixer.out", shape, mixed);
            add(x, mixed);
            const Floats h = normed(x, layer.ffn_norm), up = apply(layer.up, h);
            Floats gate = apply(layer.gate, h);
            for (size_t i = 0; i < gate.size(); ++i) gate[i] *= up[i] / (1 + std::exp(-gate[i]));  // SiLU
            add(x, apply(layer.down, gate));
            watch(at + "out", shape, x);
        }
        x = normed(x, norm_);
        watch("final_norm", shape, x);
        return apply(head_ ? *head_ : embedding_, x);
    }

private:
    static const Json& stated(const Json& config, const char* key) {
        if (const Json* found = config.find(key)) return *found;
        throw std::runtime_error(std::string("config.json lacks ") + key);
    }

    static double number(const Json& config, const char* key) {
        const Json& found = stated(config, key);
        if (found.kind == Json::Kind::number) return found.number;
        throw std::runtime_error(std::string("config.json has no number as ") + key);
    }

    static size_t size(const Json& config, const char* key) {
        const uint64_t found = stated(config, key).whole();
        if (found == 0 || found > INT32_MAX)  // so that the product of two of them fits
            throw std::runtime_error(std::string("config.json has a size that no model has: ") + key);
        return found;
    }

    Floats vector(const std::string& name, size_t n) const { return tensor(name, {n}); }
    Floats if_any(const std::string& name, size_t n) const { return stored_.count(name) ? vector(name, n) : Floats{}; }
    Linear linear(const std::string& name, size_t out, size_t in) const {
        return {out, in, tensor(name + ".weight", {out, in}), if_any(name + ".bias", out)};
    }

    Floats tensor(const std::string& name, const Shape& shape) const {
        const auto found = stored_.find(name);
        if (found == stored_.end()) throw std::runtime_error("the checkpoint lacks " + name);
        if (found->second.shape != shape || found->second.floats.empty())
            throw std::runtime_error(name + " has not the shape that config.json says, or holds whole numbers");
        return found->second.floats;
    }

    Layer layer(const Json& config, size_t n) const {
        const std::string at = "model.layers." + std::to_string(n) + ".", attn = at + "self_attn.", ffn = at + "mlp.";
        const size_t inner = heads_ * head_dim_, kv = kv_heads_ * head_dim_, wide = size(config, "intermediate_size");
        return {linear(attn + "q_proj", inner, width_),
                linear(attn + "k_proj", kv, width_),
                linear(attn + "v_proj", kv, width_),
                linear(attn + "o_proj", width_, inner),
                linear(ffn + "gate_proj", wide, width_),
                linear(ffn + "up_proj", wide, width_),
                linear(ffn + "down_proj", width_, wide),
                vector(at + "input_layernorm.weight", width_),
                vector(at + "post_attention_layernorm.weight", width_),
                if_any(attn + "q_norm.weight", head_dim_),
                if_any(attn + "k_norm.weight", head_dim_),
                window(config, n)};
    }

    static size_t window(const Json& config, size_t n) {
        const Json* kinds = config.find("layer_types");
        if (!kinds && !config.find("sliding_window")) return 0;
        const std::string kind = kinds && n < kinds->items.size() ? kinds->items[n].text : "unknown";
        if (kind == "full_attention") return 0;
        if (kind == "sliding_attention") return size(config, "sliding_window");
        throw std::runtime_error("config.json does not say which layers have a window");
    }

    void read_frequencies(const Json& config) {
        const Json* both = config.find("rope_parameters");  // before transformers 5, the base stood beside the scaling
        const Json* scaling = both ? both : config.find("rope_scaling");
        const std::string kind = scaling ? stated(*scaling, "rope_type").text : "default";
        if (kind != "default" && kind != "llama3") throw std::runtime_error("this port knows no rope_type " + kind);
        const double base = number(both ? *both : config, "rope_theta");
        for (size_t pair = 0; pair < head_dim_ / 2; ++pair) {
            const double plain = std::pow(base, -2.0 * static_cast<double>(pair) / static_cast<double>(head_dim_));
            frequencies_.push_back(static_cast<float>(kind == "llama3" ? stretched(plain, *scaling) : plain));
        }
    }

    // Llama 3: what turns often within the original context stays, what hardly turns is stretched, between they blend.
    static double stretched(double frequency, const Json& rope) {
        const double low = number(rope, "low_freq_factor"), high = number(rope, "high_freq_factor");
        const double turns = number(rope, "original_max_position_embeddings") * frequency / (2 * std::acos(-1.0));
        const double kept = std::clamp((turns - low) / (high - low), 0.0, 1.0);
        return kept * frequency + (1 - kept) * frequency / number(rope, "factor");
    }

    // What a layer's attention adds; query head h reads key/value head h / (heads / kv_heads).
    Floats attention(const Layer& layer, const Floats& x, const Whole& positions, const Whole& mask, Cache& cache,
                     const std::function<void(const Floats&)>& show_q) const {
        const Floats q = rotated(apply(layer.q, x), layer.q_norm, heads_, positions), v = apply(layer.v, x);
        const Floats k = rotated(apply(layer.k, x), layer.k_norm, kv_heads_, positions);
        show_q(q);
        const size_t row = kv_heads_ * head_dim_, past = cache.keys.size() / row;
        cache.keys.insert(cache.keys.end(), k.begin(), k.end());
        cache.values.insert(cache.values.end(), v.begin(), v.end());
        const float scale = 1 / std::sqrt(static_cast<float>(head_dim_));
        Floats mixed(q.size()), scores(past + positions.size());
        for (size_t at = 0; at < q.size(); at += head_dim_) {  // a token's heads, then the next token's
            const size_t head = at / head_dim_ % heads_, offset = head / (heads_ / kv_heads_) * head_dim_;
            // What may be read goes by places in the row, not by positions: those may have gaps.
            const size_t here = past + at / head_dim_ / heads_;
            const size_t first = layer.window && here >= layer.window ? here - layer.window + 1 : 0;
            float largest = -INFINITY, sum = 0;
            for (size_t key = first; key <= here; ++key) {
                const float score = scale * dot(&q[at], &cache.keys[key * row + offset], head_dim_);
                largest = std::max(largest, scores[key] = mask[key] ? score : -INFINITY);
            }
            for (size_t key = first; key <= here && largest > -INFINITY; ++key) {  // padding may see none: zeros
                const float share = std::exp(scores[key] - largest), *value = &cache.values[key * row + offset];
                sum += share;
                for (size_t i = 0; i < head_dim_; ++i) mixed[at + i] += share * value[i];
            }
            for (size_t i = 0; i < head_dim_ && sum > 0; ++i) mixed[at + i] /= sum;
        }
        return apply(layer.o, mixed);
    }

    // Heads [tokens, heads, head_dim], normed where there is a weight for it, then turned by their positions.
    Floats rotated(Floats x, const Floats& weight, size_t heads, const Whole& positions) const {
        if (!weight.empty()) x = normed(x, weight);
        for (size_t at = 0; at < x.size(); at += head_dim_)
            for (size_t pair = 0; pair < head_dim_ / 2; ++pair) {
#ifdef WRONG_PAIRING  // a mistake, to see it caught
                float &a = x[at + 2 * pair], &b = x[at + 2 * pair + 1];
#else
                float &a = x[at + pair], &b = x[at + pair + head_dim_ / 2];
#endif
                const float angle = static_cast<float>(positions[at / head_dim_ / heads]) * frequencies_[pair];
                const float turned = a * std::cos(angle) - b * std::sin(angle);
                b = b * std::cos(angle) + a * std::sin(angle);
                a = turned;
            }
        return x;
    }

    // RMSNorm of rows as long as the weight.
    Floats normed(Floats x, const Floats& weight) const {
        for (size_t at = 0, n = weight.size(); at < x.size(); at += n) {
            const float scale = 1 / std::sqrt(dot(&x[at], &x[at], n) / static_cast<float>(n) + eps_);
            for (size_t i = 0; i < n; ++i) x[at + i] = weight[i] * (x[at + i] * scale);
        }
        return x;
    }

    static Floats apply(const Linear& linear, const Floats& x) {
        const auto& [out, in, weight, bias] = linear;
        const size_t rows = x.size() / in;
        Floats result(rows * out);
        for (size_t o = 0; o < out; ++o)  // a row of the weights is read once, for all tokens
            for (size_t row = 0; row < rows; ++row)
                result[row * out + o] = dot(&x[row * in], &weight[o * in], in) + (bias.empty() ? 0 : bias[o]);
        return result;
    }

    static void add(Floats& x, const Floats& more) {
        for (size_t i = 0; i < x.size(); ++i) x[i] += more[i];
    }

    Tensors stored_;
    size_t vocab_, width_, heads_, kv_heads_, head_dim_;
    float eps_;
    Floats norm_, frequencies_;  // [width], [head_dim / 2]
    Linear embedding_;
    std::optional<Linear> head_;  // none where it is tied
    std::vector<Layer> layers_;
};
