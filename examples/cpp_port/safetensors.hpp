// Safetensors files: 8 bytes with the length of a JSON header (little endian, as this machine), the header, the data.
// Nothing that a header says is believed before it is held against the length of the file.
#pragma once

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "json.hpp"

using Shape = std::vector<uint64_t>;
using Floats = std::vector<float>;

struct Tensor {
    Shape shape;
    Floats floats;               // of F32 and BF16
    std::vector<int64_t> whole;  // of I64
};

using Tensors = std::map<std::string, Tensor>;

inline std::string read_file(const std::filesystem::path& file) {
    std::ifstream stream(file, std::ios::binary);
    std::string bytes(std::filesystem::file_size(file), '\0');
    if (!stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size())))
        throw std::runtime_error("cannot read " + file.string());
    return bytes;
}

inline Tensor read_tensor(const Json& entry, std::string_view data) {
    const Json *dtype = entry.find("dtype"), *shape = entry.find("shape"), *span = entry.find("data_offsets");
    if (!dtype || !shape || !span || span->items.size() != 2) throw std::runtime_error("no entry of a tensor");
    const uint64_t size = dtype->text == "I64" ? 8 : dtype->text == "F32" ? 4 : dtype->text == "BF16" ? 2 : 0;
    if (size == 0) throw std::runtime_error("this port does not read " + dtype->text);
    Tensor tensor;
    uint64_t count = 1;
    for (const Json& axis : shape->items) {
        tensor.shape.push_back(axis.whole());
        if (tensor.shape.back() > data.size() / size / count) throw std::runtime_error("larger than the file");
        if (tensor.shape.back() == 0) throw std::runtime_error("it is empty");
        count *= tensor.shape.back();
    }
    const uint64_t begin = span->items[0].whole(), end = span->items[1].whole();
    if (begin > end || end > data.size() || end - begin != count * size)
        throw std::runtime_error("it does not lie where the header says");
    const char* from = data.data() + begin;
    if (size == 8) {
        tensor.whole.resize(count);
        std::memcpy(tensor.whole.data(), from, count * size);
    } else {
        tensor.floats.resize(count);
        if (size == 4) std::memcpy(tensor.floats.data(), from, count * size);
        for (uint64_t i = 0; size == 2 && i < count; ++i)  // BF16 is the upper half of a float
            std::memcpy(reinterpret_cast<char*>(&tensor.floats[i]) + 2, from + 2 * i, 2);
    }
    return tensor;
}

inline void read_safetensors(const std::filesystem::path& file, Tensors& into) {
    const std::string raw = read_file(file);
    std::string about = file.string();
    try {
        uint64_t length = 0;
        if (raw.size() < sizeof length) throw std::runtime_error("shorter than the length of a header");
        std::memcpy(&length, raw.data(), sizeof length);
        const std::string_view rest = std::string_view(raw).substr(sizeof length);
        if (length > rest.size()) throw std::runtime_error("its header is longer than the file");
        for (const auto& [name, entry] : JsonReader::read(rest.substr(0, length)).members) {
            if (name == "__metadata__") continue;
            about = file.string() + ": " + name;
            if (!into.emplace(name, read_tensor(entry, rest.substr(length))).second)
                throw std::runtime_error("it is there twice");
        }
    } catch (const std::runtime_error& error) {
        throw std::runtime_error(about + ": " + error.what());
    }
}

inline void write_safetensors(const std::filesystem::path& file, const Tensors& tensors) {
    std::string header = "{";
    uint64_t at = 0;
    for (const auto& [name, tensor] : tensors) {
        header += header.size() > 1 ? ",\"" : "\"";
        for (const char c : name) header += c == '"' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
        header += "\":{\"dtype\":\"F32\",\"shape\":[";
        for (const uint64_t axis : tensor.shape) header += std::to_string(axis) + ",";
        header.back() = ']';
        header += ",\"data_offsets\":[" + std::to_string(at) + ",";
        at += tensor.floats.size() * sizeof(float);
        header += std::to_string(at) + "]}";
    }
    const uint64_t length = (header += "}").size();
    std::ofstream stream(file, std::ios::binary);
    stream.write(reinterpret_cast<const char*>(&length), sizeof length) << header;
    for (const auto& [name, tensor] : tensors)
        stream.write(reinterpret_cast<const char*>(tensor.floats.data()),
                     static_cast<std::streamsize>(tensor.floats.size() * sizeof(float)));
    if (!stream.flush()) throw std::runtime_error("cannot write " + file.string());
}
