#include "api/httplib_codec.h"

#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>

#include "api/problem.h"
#include "base/strings.h"

namespace clusterctl::api {
namespace {

// The library's idea of a connection, in memory.
class MemoryStream final : public httplib::Stream {
 public:
  explicit MemoryStream(std::string input) : input_(std::move(input)) {}

  bool is_readable() const override { return position_ < input_.size(); }
  bool is_writable() const override { return true; }
  ssize_t read(char* buffer, size_t size) override {
    const size_t n = input_.copy(buffer, size, position_);
    position_ += n;
    return static_cast<ssize_t>(n);
  }
  ssize_t write(const char* data, size_t size) override {
    output_.append(data, size);
    return static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return INVALID_SOCKET; }

  std::string take() { return std::move(output_); }

 private:
  std::string input_;
  size_t position_ = 0;
  std::string output_;
};

bool accepts_gzip(const RawRequest& request) {
  const auto value = request.headers.get("Accept-Encoding");
  if (!value) return false;
  for (const std::string& item : split(*value, ',')) {
    const auto parts = split(lower(item), ';');
    const std::string name = trim(parts[0]);
    if (name == "gzip") return parts.size() < 2 || trim(parts[1]).find("q=0") != 0;
  }
  return false;
}

// Header values must not be able to end their line.
std::string clean(std::string_view value) {
  return trim(one_line(value));
}

}  // namespace

class HttplibCodec::Server final : public httplib::Server {
 public:
  explicit Server(std::chrono::seconds idle) {
    set_pre_routing_handler([this](const httplib::Request&, httplib::Response& out) {
      fill(out);
      return HandlerResponse::Handled;
    });
    set_exception_handler([](const httplib::Request&, httplib::Response& out, std::exception_ptr) {
      out.status = 500;
    });
    // We keep a connection until it has been idle for a while, however many requests it has
    // carried.
    set_keep_alive_max_count(1'000'000);
    set_keep_alive_timeout(idle.count());
  }

  std::string encode(std::string head, const Response& response, bool keep_alive) {
    response_ = &response;
    MemoryStream stream(std::move(head));
    bool closed = !keep_alive;
    process_request(stream, !keep_alive, closed, nullptr);
    response_ = nullptr;
    return stream.take();
  }

 private:
  void fill(httplib::Response& out) const {
    out.status = response_->status;
    out.set_header("Accept-Ranges", "none");  // else it promises ranges to HEAD
    for (const auto& [name, value] : response_->headers) out.set_header(name, clean(value));
    if (!response_->content_type.empty()) {
      out.set_content(response_->body, response_->content_type);
    }
  }

  const Response* response_ = nullptr;
};

HttplibCodec::HttplibCodec(std::chrono::milliseconds idle)
    : idle_(std::chrono::floor<std::chrono::seconds>(idle)),
      server_(std::make_unique<Server>(idle_)) {
  // The library fills tables of its own at its first request; the engine's first codec is made
  // before there are other threads.
  encode(RawRequest(), Response::no_content(), true);
}
HttplibCodec::~HttplibCodec() = default;

std::string HttplibCodec::encode(const RawRequest& request, const Response& response,
                                 bool keep_alive) {
  std::string head = request.method == "HEAD" ? "HEAD" : "GET";
  head += " / HTTP/1.1\r\n";
  if (accepts_gzip(request)) head += "Accept-Encoding: gzip\r\n";
  if (!keep_alive) head += "Connection: close\r\n";
  head += "\r\n";
  std::string out = server_->encode(std::move(head), response, keep_alive);
  // The library gives a length to answers that must have none.
  constexpr std::string_view kNoLength = "Content-Length: 0\r\n";
  const size_t at = response.status == 204 ? out.find(kNoLength) : std::string::npos;
  if (at != std::string::npos) out.erase(at, kNoLength.size());
  return out;
}

// The library would copy the body.
std::string HttplibCodec::encode(const RawRequest& request, const Response& response,
                                 bool keep_alive, SharedText& body) {
  if (!response.shared) return encode(request, response, keep_alive);
  if (accepts_gzip(request)) {
    Response copy;
    copy.status = response.status;
    copy.content_type = response.content_type;
    copy.headers = response.headers;
    copy.body = *response.shared;
    return encode(request, copy, keep_alive);
  }
  std::string out = fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n",
                                response.status, status_title(response.status),
                                clean(response.content_type), response.shared->size());
  for (const auto& [name, value] : response.headers)
    out += fmt::format("{}: {}\r\n", name, clean(value));
  out += keep_alive ? fmt::format("Keep-Alive: timeout={}\r\n", idle_.count())
                    : std::string("Connection: close\r\n");
  if (request.method != "HEAD") body = response.shared;
  return out + "\r\n";
}

std::string stream_head(const RawRequest& request, const Response& response) {
  std::string out = fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\n", response.status,
                                status_title(response.status), clean(response.content_type));
  for (const auto& [name, value] : response.headers) {
    out += fmt::format("{}: {}\r\n", name, clean(value));
  }
  // X-Accel-Buffering: proxies that know it pass events on at once.
  out += "X-Accel-Buffering: no\r\nConnection: close\r\n";
  if (request.minor == 1) out += "Transfer-Encoding: chunked\r\n";
  return out + "\r\n";
}

}  // namespace clusterctl::api
