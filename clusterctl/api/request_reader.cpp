#include "api/request_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/strings.h"

namespace clusterctl::api {
namespace {

constexpr size_t kMaxMethod = 32;
constexpr size_t kMaxChunkLine = 256;

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

bool all_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string_view trim_blanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// True when a comma-separated list has the word.
bool lists(std::string_view value, std::string_view word) {
  for (const std::string& item : split(value, ',')) {
    if (lower(trim_blanks(item)) == word) return true;
  }
  return false;
}

}  // namespace

RequestReader::State RequestReader::feed(std::string_view bytes) {
  if (state_ == State::kBad) return state_;
  buffer_.append(bytes);
  while (state_ == State::kMore && step()) {
  }
  if (state_ == State::kBad) {
    buffer_.clear();
    buffer_.shrink_to_fit();
    pos_ = 0;
  } else if (pos_ > 0 && state_ == State::kMore) {
    buffer_.erase(0, pos_);
    scan_ -= pos_;
    pos_ = 0;
  }
  return state_;
}

RawRequest RequestReader::take() {
  RawRequest out = std::move(request_);
  buffer_.erase(0, pos_);
  if (buffer_.empty()) buffer_.shrink_to_fit();  // an idle connection holds nothing
  pos_ = scan_ = 0;
  state_ = State::kMore;
  step_ = Step::kRequestLine;
  request_ = RawRequest();
  header_bytes_ = header_count_ = missing_ = chunk_overhead_ = 0;
  skipped_blank_ = expects_continue_ = false;
  return out;
}

bool RequestReader::take_expectation() {
  const bool waits = expects_continue_ && state_ == State::kMore && step_ != Step::kRequestLine &&
                     step_ != Step::kHeaders;
  if (waits) expects_continue_ = false;
  return waits;
}

bool RequestReader::step() {
  switch (step_) {
    case Step::kRequestLine:
      return request_line();
    case Step::kHeaders:
    case Step::kTrailers:
      return header_line();
    case Step::kBody:
      return take_body(missing_) && ready();
    case Step::kChunkSize:
      return chunk_size();
    case Step::kChunkData:
      if (!take_body(missing_)) return false;
      step_ = Step::kChunkEnd;
      return true;
    case Step::kChunkEnd: {
      if (buffer_.size() - pos_ < 2) return false;
      if (buffer_.compare(pos_, 2, "\r\n") != 0) {
        return refuse(400, "bad_chunk", "a chunk of the body is longer than it says");
      }
      pos_ += 2;
      scan_ = pos_;
      step_ = Step::kChunkSize;
      return true;
    }
  }
  return false;
}

// A line without its CRLF; false when it is not complete yet (the caller looks at `limit` for too
// long ones) or malformed.
bool RequestReader::next_line(size_t limit, std::string_view& line) {
  const size_t end = buffer_.find('\n', scan_);
  const size_t length = (end == std::string::npos ? buffer_.size() : end) - pos_;
  if (length > limit) {
    if (step_ == Step::kRequestLine) {
      return refuse(414, "uri_too_long",
                    fmt::format("the request line is longer than {} bytes", limit));
    }
    if (step_ == Step::kChunkSize) return refuse(400, "bad_chunk", "a chunk header is too long");
    return refuse(431, "headers_too_large",
                  fmt::format("the headers are longer than {} bytes", limits_.header_bytes));
  }
  if (end == std::string::npos) {
    scan_ = buffer_.size();
    return false;
  }
  if (length == 0 || buffer_[end - 1] != '\r') {
    return refuse(400, "bad_line_end", "a line of the request does not end with CR LF");
  }
  line = std::string_view(buffer_).substr(pos_, length - 1);
  for (const unsigned char c : line) {
    if ((c < 0x20 && c != '\t') || c == 0x7f) {
      return refuse(400, "control_character", "a control character stands in the request's head");
    }
  }
  pos_ = scan_ = end + 1;
  return true;
}

bool RequestReader::request_line() {
  // Something that speaks another protocol (TLS) is told at once.
  if (pos_ < buffer_.size() && buffer_[pos_] != '\r' && !is_token(buffer_.substr(pos_, 1))) {
    return refuse(400, "bad_request_line", "this is not HTTP");
  }
  std::string_view line;
  if (!next_line(limits_.request_line, line)) return false;
  if (line.empty()) {  // some clients end the previous request's body with a CRLF
    if (skipped_blank_) return refuse(400, "bad_request_line", "the request line is empty");
    skipped_blank_ = true;
    return true;
  }
  const size_t first = line.find(' ');
  const size_t second = first == std::string_view::npos ? first : line.find(' ', first + 1);
  if (second == std::string_view::npos) {
    return refuse(400, "bad_request_line", "the request line is not METHOD TARGET VERSION");
  }
  const std::string_view method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, second - first - 1);
  const std::string_view version = line.substr(second + 1);
  if (!is_token(method) || method.size() > kMaxMethod) {
    return refuse(400, "bad_method", "the method is not a word");
  }
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    return refuse(400, "bad_version", "only HTTP/1.1 and HTTP/1.0 are spoken here");
  }
  const bool visible = std::all_of(target.begin(), target.end(),
                                   [](unsigned char c) { return c > 0x20 && c < 0x7f; });
  if (target.empty() || target.front() != '/' || !visible) {
    return refuse(400, "bad_target", "the target of the request is not a path");
  }
  request_.method = method;
  request_.target = target;
  request_.minor = version.back() - '0';
  step_ = Step::kHeaders;
  return true;
}

bool RequestReader::header_line() {
  const size_t start = pos_;
  std::string_view line;
  if (!next_line(limits_.header_bytes - std::min(limits_.header_bytes, header_bytes_), line)) {
    return false;
  }
  if (line.empty()) return step_ == Step::kTrailers ? ready() : head_complete();
  header_bytes_ += pos_ - start;
  if (++header_count_ > limits_.header_count) {
    return refuse(431, "too_many_headers",
                  fmt::format("more than {} header fields", limits_.header_count));
  }
  std::string name, value;
  if (!field(line, name, value)) return false;
  if (step_ == Step::kHeaders) request_.headers.add(std::move(name), std::move(value));
  return true;
}

bool RequestReader::field(std::string_view line, std::string& name, std::string& value) {
  if (line.front() == ' ' || line.front() == '\t') {
    return refuse(400, "folded_header", "a header field is folded over two lines");
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) {
    return refuse(400, "bad_header", "a header field is not NAME: VALUE");
  }
  name = line.substr(0, colon);
  value = trim_blanks(line.substr(colon + 1));
  return true;
}

bool RequestReader::head_complete() {
  if (!check_framing() || !check_body_kind()) return false;
  if (const auto value = request_.headers.get("Expect")) {
    if (lower(*value) != "100-continue") {
      return refuse(417, "bad_expectation", "the only expectation known here is 100-continue");
    }
    expects_continue_ = request_.minor == 1;
  }
  request_.keep_alive = request_.minor == 1;
  for (const auto& [name, value] : request_.headers.fields()) {
    if (lower(name) == "connection" && lists(value, "close")) request_.keep_alive = false;
  }
  return step_ == Step::kBody && missing_ == 0 ? ready() : true;
}

// How the body is delimited must be beyond doubt; sets the next step.
bool RequestReader::check_framing() {
  const Headers& headers = request_.headers;
  const size_t hosts = headers.count("Host");
  if (hosts > 1 || (hosts == 0 && request_.minor == 1)) {
    return refuse(400, "bad_host", "the request needs exactly one Host header");
  }
  const size_t lengths = headers.count("Content-Length");
  const size_t encodings = headers.count("Transfer-Encoding");
  if (lengths + encodings > 1) {
    return refuse(400, "ambiguous_length", "the request says more than once how long its body is");
  }
  step_ = Step::kBody;
  missing_ = 0;
  if (encodings == 1) {
    if (request_.minor == 0 || lower(*headers.get("Transfer-Encoding")) != "chunked") {
      return refuse(400, "bad_transfer_encoding", "the only transfer encoding known is chunked");
    }
    step_ = Step::kChunkSize;
  } else if (lengths == 1) {
    const std::string_view text = *headers.get("Content-Length");
    if (!all_digits(text)) return refuse(400, "bad_length", "Content-Length is not a number");
    const size_t zeros = std::min(text.find_first_not_of('0'), text.size());
    const std::string digits(text.substr(zeros));
    const bool huge = digits.size() > 18;
    missing_ = huge || digits.empty() ? 0 : std::stoull(digits);
    if (huge || missing_ > limits_.body) {
      return refuse(413, "body_too_large",
                    fmt::format("the body is larger than {} bytes", limits_.body));
    }
  }
  return true;
}

bool RequestReader::check_body_kind() {
  if (request_.headers.count("Content-Type") > 1) {
    return refuse(400, "ambiguous_type", "the request says more than once what its body is");
  }
  for (const auto& [name, value] : request_.headers.fields()) {
    if (lower(name) == "content-encoding" && lower(value) != "identity") {
      return refuse(415, "compressed_body", "compressed request bodies are not accepted");
    }
  }
  return true;
}

// Moves what is there of `missing` bytes into the body; false when more must come.
bool RequestReader::take_body(size_t& missing) {
  const size_t piece = std::min(missing, buffer_.size() - pos_);
  request_.body.append(buffer_, pos_, piece);
  pos_ += piece;
  scan_ = pos_;
  missing -= piece;
  return missing == 0;
}

bool RequestReader::chunk_size() {
  const size_t start = pos_;
  std::string_view line;
  if (!next_line(kMaxChunkLine, line)) return false;
  chunk_overhead_ += pos_ - start;
  const std::string_view digits = trim_blanks(line.substr(0, line.find(';')));
  const bool hex = !digits.empty() && std::all_of(digits.begin(), digits.end(),
                                                  [](unsigned char c) { return std::isxdigit(c); });
  if (!hex) return refuse(400, "bad_chunk", "the size of a chunk is not a hexadecimal number");
  const size_t zeros = std::min(digits.find_first_not_of('0'), digits.size());
  const std::string significant(digits.substr(zeros));
  const bool huge = significant.size() > 8;
  missing_ = huge || significant.empty() ? 0 : std::stoull(significant, nullptr, 16);
  // The framing is bounded too: one byte a chunk with a long extension would cost us 256 times the
  // body.
  if (huge || request_.body.size() + missing_ > limits_.body || chunk_overhead_ > limits_.body) {
    return refuse(413, "body_too_large",
                  fmt::format("the body is larger than {} bytes", limits_.body));
  }
  step_ = missing_ == 0 ? Step::kTrailers : Step::kChunkData;
  return true;
}

bool RequestReader::ready() {
  state_ = State::kReady;
  return false;
}

bool RequestReader::refuse(int status, std::string_view reason, std::string_view message) {
  state_ = State::kBad;
  rejection_ = {status, std::string(reason), std::string(message)};
  request_.keep_alive = false;
  return false;
}

}  // namespace clusterctl::api
