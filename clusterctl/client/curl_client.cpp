#include "client/curl_client.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/strings.h"
#include "client/server_trust.h"

namespace clusterctl::client {
namespace {

constexpr int kPollMs = 100;
constexpr long kTooManyRequests = 429;
constexpr size_t kMaxErrorBody = 4 << 20;

struct EasyDelete {
  void operator()(CURL* h) const { curl_easy_cleanup(h); }
};
struct MultiDelete {
  void operator()(CURLM* h) const { curl_multi_cleanup(h); }
};
struct ListDelete {
  void operator()(curl_slist* l) const { curl_slist_free_all(l); }
};
using Easy = std::unique_ptr<CURL, EasyDelete>;
using Multi = std::unique_ptr<CURLM, MultiDelete>;
using List = std::unique_ptr<curl_slist, ListDelete>;

// One transfer: what the callbacks of libcurl write into.
struct Transfer {
  CURL* handle = nullptr;
  size_t limit = 0;
  std::string body;  // everything, or only an error's when `receive` is set
  const Receive* receive = nullptr;
  bool too_large = false;
  bool foreign = false;    // a stream of another kind of content than the daemon's
  bool stopped = false;    // the receiver had enough
  bool got_bytes = false;  // anything at all came back
  std::string etag;
  std::string content_type;
  int retry_after = 0;  // seconds; 0: not said

  bool success() const {
    long status = 0;
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    return status >= 200 && status < 300;
  }
};

// What the daemon's streams and logs are; a page of some web server is no log.
bool is_stream(const std::string& content_type) {
  for (const char* kind : {"text/event-stream", "text/plain", "application/x-ndjson"}) {
    if (content_type.starts_with(kind)) return true;
  }
  return false;
}

size_t on_body(char* data, size_t, size_t size, void* user) {
  Transfer& t = *static_cast<Transfer*>(user);
  if (t.receive && t.success()) {
    t.foreign = !is_stream(t.content_type);
    if (t.foreign) return 0;
    if ((*t.receive)({data, size})) return size;
    t.stopped = true;
    return 0;
  }
  if (t.body.size() + size > t.limit) {
    t.too_large = true;
    return 0;
  }
  t.body.append(data, size);
  return size;
}

size_t on_header(char* data, size_t, size_t size, void* user) {
  Transfer& t = *static_cast<Transfer*>(user);
  t.got_bytes = true;
  const std::string_view line(data, size);
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return size;
  const std::string name = lower(line.substr(0, colon));
  if (name == "etag") t.etag = trim(line.substr(colon + 1));
  if (name == "content-type") t.content_type = lower(trim(line.substr(colon + 1)));
  if (name == "retry-after") t.retry_after = std::atoi(trim(line.substr(colon + 1)).c_str());
  return size;
}

CURLcode on_tls(CURL*, void* ssl_context, void* user) {
  static_cast<ServerTrust*>(user)->install(ssl_context);
  return CURLE_OK;
}

bool failed_in_tls(CURLcode code) {
  return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CONNECT_ERROR ||
         code == CURLE_SSL_CERTPROBLEM || code == CURLE_SSL_CACERT_BADFILE ||
         code == CURLE_SSL_CIPHER || code == CURLE_SSL_ISSUER_ERROR;
}

class CurlClient final : public RestClient {
 public:
  explicit CurlClient(Settings settings)
      : settings_(std::move(settings)), trust_(settings_.ca_pin) {}

  Result<Response> send(const Request& request) override {
    Transfer t;
    t.limit = settings_.max_answer_bytes;
    long status = 0;
    for (;;) {
      const KeepGoing* keep_going = request.keep_going ? &request.keep_going : nullptr;
      if (auto done = try_all(request, t, keep_going); !done) return fail(done.error());
      if (t.stopped) return fail(Code::kUnavailable, "interrupted", "interrupted");
      curl_easy_getinfo(t.handle, CURLINFO_RESPONSE_CODE, &status);
      // It was not taken, so it may be sent again whatever it is.
      if (status != kTooManyRequests || t.retry_after <= 0 || !settings_.wait_for_turn ||
          !settings_.wait_for_turn(std::chrono::seconds(t.retry_after), request.keep_going))
        break;
    }
    Response response;
    response.status = static_cast<int>(status);
    response.etag = t.etag;
    if (status < 200 || status >= 300) return fail(answer_error(response.status, t.body));
    if (t.content_type.find("json") != std::string::npos) {
      auto json = parse_json(t.body, "the daemon's answer", 128);
      if (!json) return fail(foreign_answer(server(), json.error().message));
      response.json = std::move(*json);
    }
    response.text = std::move(t.body);
    return response;
  }

  Status stream(const Request& request, const Receive& receive,
                const KeepGoing& keep_going) override {
    Transfer t;
    t.limit = kMaxErrorBody;
    t.receive = &receive;
    if (auto done = try_all(request, t, &keep_going); !done) return done;
    long status = 0;
    curl_easy_getinfo(t.handle, CURLINFO_RESPONSE_CODE, &status);
    if (t.stopped || (status >= 200 && status < 300)) return {};
    return fail(answer_error(static_cast<int>(status), t.body));
  }

  std::string server() const override {
    return settings_.endpoints.empty() ? "" : settings_.endpoints[current_].name;
  }

 private:
  // Begins with the server that answered last and goes on to the next only when this request cannot
  // have had an effect: no connection was made, or nothing came back of what only reads.
  Status try_all(const Request& request, Transfer& t, const KeepGoing* keep_going) {
    std::vector<Error> failed;
    for (size_t i = 0; i < settings_.endpoints.size(); ++i) {
      const size_t index = (current_ + i) % settings_.endpoints.size();
      auto done = perform(settings_.endpoints[index], request, t, keep_going);
      if (done) {
        current_ = index;
        return done;
      }
      const bool silent =
          request.method == "GET" && !t.got_bytes && done.error().code == Code::kUnavailable;
      failed.push_back(done.error());
      if (done.error().reason != "unreachable" && done.error().reason != "no_permission" && !silent)
        break;
    }
    if (failed.empty()) return fail(Code::kInvalid, "no_server", "no server is given");
    return fail(all_of(failed));
  }

  // Who could be used, if one were allowed to, or what may have had an effect is the better news;
  // the message tells of each.
  static Error all_of(const std::vector<Error>& failed) {
    Error out = failed.front();
    std::vector<std::string> messages;
    for (const Error& e : failed) {
      messages.push_back(e.message);
      if (out.reason == "unreachable" && e.reason != "unreachable") out = e;
    }
    out.message = join(messages, "; ");
    return out;
  }

  Status perform(const Endpoint& endpoint, const Request& request, Transfer& t,
                 const KeepGoing* keep_going) {
    const bool clear = endpoint.socket.empty() && endpoint.url.starts_with("http://");
    if (clear && !endpoint.local && !settings_.token.empty()) {
      return fail(Code::kInvalid, "plain_token",
                  fmt::format("the token is not sent to {} without TLS", endpoint.name),
                  "use https://");
    }
    if (!easy_) easy_.reset(curl_easy_init());
    if (!multi_) multi_.reset(curl_multi_init());
    if (!easy_ || !multi_) return fail(Code::kInternal, "curl", "libcurl cannot be started");
    CURL* h = easy_.get();
    curl_easy_reset(h);
    t.handle = h;
    t.body.clear();
    t.got_bytes = t.too_large = t.foreign = t.stopped = false;
    t.content_type.clear();
    t.retry_after = 0;
    std::string body;
    const List headers = prepare(h, endpoint, request, t, body, t.receive != nullptr);
    const auto [code, given_up] = run(h, keep_going);
    if (given_up || t.stopped) {
      t.stopped = true;
      return {};
    }
    return judge(code, endpoint, t);
  }

  List prepare(CURL* h, const Endpoint& endpoint, const Request& request, Transfer& t,
               std::string& body, bool streaming) {
    curl_easy_setopt(h, CURLOPT_URL, (endpoint.url + target(request)).c_str());
    if (!endpoint.socket.empty()) {
      curl_easy_setopt(h, CURLOPT_UNIX_SOCKET_PATH, endpoint.socket.c_str());
    }
    if (endpoint.local) curl_easy_setopt(h, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(h, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(h, CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(h, CURLOPT_SSL_CTX_FUNCTION, on_tls);
    curl_easy_setopt(h, CURLOPT_SSL_CTX_DATA, &trust_);
    if (!settings_.ca_file.empty() || !settings_.ca_pin.empty()) {
      // A pin needs no others, and a new machine may have none.
      curl_easy_setopt(h, CURLOPT_CAINFO,
                       settings_.ca_pin.empty() ? settings_.ca_file.c_str() : nullptr);
      curl_easy_setopt(h, CURLOPT_CAPATH, nullptr);
    }
    error_text_[0] = '\0';
    curl_easy_setopt(h, CURLOPT_ERRORBUFFER, error_text_.data());
    curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS,
                     static_cast<long>(settings_.connect_timeout.count()));
    if (streaming) {
      curl_easy_setopt(h, CURLOPT_LOW_SPEED_LIMIT, 1L);
      curl_easy_setopt(h, CURLOPT_LOW_SPEED_TIME, static_cast<long>(settings_.silence.count()));
    } else {
      curl_easy_setopt(h, CURLOPT_TIMEOUT_MS, static_cast<long>(settings_.request_timeout.count()));
    }
    curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(h, CURLOPT_WRITEDATA, &t);
    curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(h, CURLOPT_HEADERDATA, &t);
    curl_easy_setopt(h, CURLOPT_USERAGENT, settings_.user_agent.c_str());
    if (request.method != "GET") {
      curl_easy_setopt(h, CURLOPT_CUSTOMREQUEST, request.method.c_str());
    }
    List list;
    const auto add = [&list](const std::string& line) {
      list.reset(curl_slist_append(list.release(), line.c_str()));
    };
    if (request.body) {
      body = dump_json(*request.body);
      curl_easy_setopt(h, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
      curl_easy_setopt(h, CURLOPT_POSTFIELDS, body.c_str());
      add("Content-Type: application/json");
      add("Expect:");
    }
    if (!settings_.token.empty() && endpoint.socket.empty()) {
      add("Authorization: Bearer " + settings_.token);
    }
    for (const auto& [name, value] : request.headers) add(name + ": " + one_line(value));
    curl_easy_setopt(h, CURLOPT_HTTPHEADER, list.get());
    return list;
  }

  // The transfer to its end, or until `keep_going` says no.
  std::pair<CURLcode, bool> run(CURL* h, const KeepGoing* keep_going) {
    CURLM* m = multi_.get();
    curl_multi_add_handle(m, h);
    CURLcode code = CURLE_FAILED_INIT;
    bool given_up = false;
    for (int running = 1; running != 0;) {
      if (curl_multi_perform(m, &running) != CURLM_OK) break;
      int left = 0;
      while (const CURLMsg* message = curl_multi_info_read(m, &left)) {
        if (message->msg == CURLMSG_DONE) code = message->data.result;
      }
      if (running == 0) break;
      if (keep_going && !(*keep_going)()) {
        given_up = true;
        break;
      }
      if (curl_multi_poll(m, nullptr, 0, kPollMs, nullptr) != CURLM_OK) break;
    }
    curl_multi_remove_handle(m, h);
    return {code, given_up};
  }

  Status judge(CURLcode code, const Endpoint& endpoint, const Transfer& t) {
    if (code == CURLE_OK) return {};
    if (t.too_large)
      return fail(foreign_answer(endpoint.name, fmt::format("more than {} bytes", t.limit)));
    if (t.foreign)
      return fail(foreign_answer(endpoint.name, fmt::format("\"{}\"", one_line(t.content_type))));
    if (failed_in_tls(code)) {
      const std::string_view text(error_text_.data());
      return fail(trust_.explain(endpoint.name, host_of(endpoint.url),
                                 text.empty() ? curl_easy_strerror(code) : text));
    }
    double connected = 0;
    curl_easy_getinfo(t.handle, CURLINFO_CONNECT_TIME, &connected);
    long os = 0;
    curl_easy_getinfo(t.handle, CURLINFO_OS_ERRNO, &os);
    const bool unreachable =
        !t.got_bytes && (code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST ||
                         (code == CURLE_OPERATION_TIMEDOUT && connected == 0));
    if (!unreachable) {
      return fail(lost(code, endpoint, t));
    }
    if (os == EACCES || os == EPERM) {
      return fail(Code::kForbidden, "no_permission",
                  fmt::format("not allowed to use {}", endpoint.name),
                  "run it as root or as a member of the group clusterctl");
    }
    const std::string why =
        os != 0 ? std::strerror(static_cast<int>(os)) : curl_easy_strerror(code);
    return fail(Code::kUnavailable, "unreachable",
                fmt::format("no daemon answers at {}: {}", endpoint.name, one_line(why)),
                "start it (systemctl start clusterctl), or name another with --server or "
                "CLUSTERCTL_SERVER");
  }

  // A connection was made, and no whole answer came.
  Error lost(CURLcode code, const Endpoint& endpoint, const Transfer& t) const {
    Error error{Code::kUnavailable, "connection_lost", "", "", {}};
    const char* where = t.got_bytes ? "in the middle of its answer" : "without an answer";
    switch (code) {
      case CURLE_OPERATION_TIMEDOUT: {
        const auto limit =
            t.receive ? settings_.silence
                      : std::chrono::duration_cast<std::chrono::seconds>(settings_.request_timeout);
        error.message = t.got_bytes
                            ? fmt::format("{} stopped {}", endpoint.name, where)
                            : fmt::format("{} took the request and does not answer", endpoint.name);
        error.message += fmt::format(" (waited {} s)", limit.count());
        error.hint = "--request-timeout waits longer; the daemon's log may say what it does";
        break;
      }
      case CURLE_GOT_NOTHING:
      case CURLE_PARTIAL_FILE:
      case CURLE_RECV_ERROR:
        error.message = fmt::format("{} closed the connection {}", endpoint.name, where);
        break;
      case CURLE_UNSUPPORTED_PROTOCOL:
      case CURLE_WEIRD_SERVER_REPLY:
        error.message = fmt::format("{} answers something that is no HTTP", endpoint.name);
        error.hint = "is it a clusterctl daemon?";
        break;
      default:
        error.message = fmt::format("the connection to {} was lost: {}", endpoint.name,
                                    one_line(curl_easy_strerror(code)));
    }
    return error;
  }

  Error answer_error(int status, const std::string& body) const {
    Error error = error_from_answer(status, body);
    // The daemon speaks to whoever writes requests; this is for who gives options.
    if (error.reason == "no_token" || error.reason == "wrong_token") error.hint.clear();
    if (error.code == Code::kUnauthenticated && error.hint.empty()) {
      error.hint = settings_.token.empty()
                       ? "give the daemon's token file with --token-file or CLUSTERCTL_TOKEN_FILE"
                       : "is it the token file of this daemon?";
    }
    if (status >= 300 && status < 400)
      return foreign_answer(server(), fmt::format("a redirect ({})", status));
    return error;
  }

  static std::string host_of(const std::string& url) {
    const std::string rest = url.substr(url.find("://") + 3);
    return rest.front() == '[' ? rest.substr(1, rest.find(']') - 1)
                               : rest.substr(0, rest.find(':'));
  }

  Settings settings_;
  size_t current_ = 0;
  std::array<char, CURL_ERROR_SIZE> error_text_{};
  ServerTrust trust_;  // outlives the connections, whose contexts refer to it
  Multi multi_;        // before easy_: a handle must go before the multi that holds its connection
  Easy easy_;
};

}  // namespace

std::unique_ptr<RestClient> make_curl_client(Settings settings) {
  return std::make_unique<CurlClient>(std::move(settings));
}

}  // namespace clusterctl::client
