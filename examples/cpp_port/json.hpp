// A reader of JSON that trusts nothing: depth is bounded, and what is no JSON is an error with its place.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

struct Json {
    enum class Kind { null, boolean, number, text, list, object };
    Kind kind = Kind::null;
    double number = 0;
    std::string text;
    std::vector<Json> items;
    std::vector<std::pair<std::string, Json>> members;

    // The value of a key; nullptr where there is none, or null.
    const Json* find(std::string_view key) const {
        for (const auto& [name, value] : members)
            if (name == key) return value.kind == Kind::null ? nullptr : &value;
        return nullptr;
    }

    uint64_t whole() const {
        constexpr double kExact = 9007199254740992;  // 2^53: a double holds every whole number up to it
        if (kind != Kind::number || !(number >= 0 && number <= kExact) || number != std::floor(number))
            throw std::runtime_error("a whole number is wanted where there is none");
        return static_cast<uint64_t>(number);
    }
};

class JsonReader {
public:
    static Json read(std::string_view text) {
        JsonReader reader{text};
        Json value = reader.value(0);
        reader.peek();
        if (reader.at_ != text.size()) reader.fail();
        return value;
    }

private:
    explicit JsonReader(std::string_view text) : text_(text) {}

    [[noreturn]] void fail() const { throw std::runtime_error("no JSON, at byte " + std::to_string(at_)); }

    // The next character behind white space; '\0' at the end.
    char peek() {
        while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
        return at_ < text_.size() ? text_[at_] : '\0';
    }

    bool take(std::string_view wanted) {
        peek();
        if (text_.substr(at_, wanted.size()) != wanted) return false;
        at_ += wanted.size();
        return true;
    }

    void expect(std::string_view wanted) {
        if (!take(wanted)) fail();
    }

    Json value(int depth) {
        if (depth > 64) fail();
        Json result;
        if (take("{")) {
            result.kind = Json::Kind::object;
            while (!take("}")) {
                if (!result.members.empty()) expect(",");
                expect("\"");
                std::string key = rest_of_string();
                expect(":");
                result.members.emplace_back(std::move(key), value(depth + 1));
            }
        } else if (take("[")) {
            result.kind = Json::Kind::list;
            while (!take("]")) {
                if (!result.items.empty()) expect(",");
                result.items.push_back(value(depth + 1));
            }
        } else if (take("\"")) {
            result.kind = Json::Kind::text;
            result.text = rest_of_string();
        } else if (take("true") || take("false")) {
            result.kind = Json::Kind::boolean;
        } else if (!take("null")) {
            result.kind = Json::Kind::number;
            result.number = number();
        }
        return result;
    }

    double number() {
        const size_t begin = at_;
        while (text_.substr(at_, 1).find_first_of("+-.eE0123456789") == 0) ++at_;
        const std::string digits(text_.substr(begin, at_ - begin));
        char* end = nullptr;
        const double found = std::strtod(digits.c_str(), &end);
        if (digits.empty() || *end != '\0' || !std::isfinite(found)) fail();
        return found;
    }

    std::string rest_of_string() {
        for (std::string result;; ++at_) {
            if (at_ >= text_.size()) fail();
            if (text_[at_] == '"') return ++at_, result;
            if (text_[at_] == '\\') {
                constexpr std::string_view kWritten = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
                const size_t which = kWritten.find(text_.substr(++at_, 1));
                if (at_ >= text_.size() || which == std::string_view::npos) fail();  // \uXXXX: no name here needs it
                result += kMeant[which];
            } else {
                result += text_[at_];
            }
        }
    }

    std::string_view text_;
    size_t at_ = 0;
};
