#include <curl/curl.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <map>

#include "base/strings.h"
#include "notify/transport.h"

namespace clusterctl::notify {
namespace {

struct EasyDelete {
  void operator()(CURL* h) const { curl_easy_cleanup(h); }
};
struct MultiDelete {
  void operator()(CURLM* h) const { curl_multi_cleanup(h); }
};
struct ListDelete {
  void operator()(curl_slist* l) const { curl_slist_free_all(l); }
};

size_t ignore_body(char*, size_t, size_t size, void*) {
  return size;
}

// Playbook runs must not inherit the connection.
curl_socket_t open_socket(void*, curlsocktype, curl_sockaddr* address) {
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

struct Transfer {
  Post post;  // libcurl reads the body from here
  std::unique_ptr<curl_slist, ListDelete> headers;
  std::unique_ptr<CURL, EasyDelete> easy;
  char error[CURL_ERROR_SIZE] = {};
};

class CurlTransport final : public Transport {
 public:
  explicit CurlTransport(TransportOptions options)
      : options_(std::move(options)), multi_(curl_multi_init()) {}
  ~CurlTransport() override {
    for (auto& [handle, transfer] : transfers_) curl_multi_remove_handle(multi_.get(), handle);
    transfers_.clear();
  }

  void start(Post post) override {
    auto t = std::make_unique<Transfer>();
    t->post = std::move(post);
    t->easy.reset(curl_easy_init());
    if (!multi_ || !t->easy) {
      failed_.push_back({t->post.ticket, 0, "libcurl cannot be started"});
      return;
    }
    CURL* h = t->easy.get();
    prepare(h, *t);
    curl_multi_add_handle(multi_.get(), h);
    transfers_[h] = std::move(t);
  }

  std::vector<Outcome> wait(std::chrono::milliseconds limit) override {
    std::vector<Outcome> out = std::move(failed_);
    failed_.clear();
    int running = 0;
    curl_multi_perform(multi_.get(), &running);
    collect(out);
    if (!out.empty()) return out;
    const auto ms = std::clamp<int64_t>(limit.count(), 0, 3'600'000);
    curl_multi_poll(multi_.get(), nullptr, 0, static_cast<int>(ms), nullptr);
    curl_multi_perform(multi_.get(), &running);
    collect(out);
    return out;
  }

  void wake() override { curl_multi_wakeup(multi_.get()); }

 private:
  void prepare(CURL* h, Transfer& t) const {
    for (const std::string& line : t.post.headers)
      t.headers.reset(curl_slist_append(t.headers.release(), line.c_str()));
    t.headers.reset(curl_slist_append(t.headers.release(), "Expect:"));
    curl_easy_setopt(h, CURLOPT_URL, t.post.url.c_str());
    curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(h, CURLOPT_QUICK_EXIT, 1L);  // a slow name server does not hold up the end
    curl_easy_setopt(h, CURLOPT_PROXY, t.post.proxy.c_str());
    if (!t.post.ca_file.empty()) curl_easy_setopt(h, CURLOPT_CAINFO, t.post.ca_file.c_str());
    curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS,
                     static_cast<long>(options_.connect_timeout.count()));
    curl_easy_setopt(h, CURLOPT_TIMEOUT_MS, static_cast<long>(options_.timeout.count()));
    curl_easy_setopt(h, CURLOPT_USERAGENT, options_.user_agent.c_str());
    curl_easy_setopt(h, CURLOPT_HTTPHEADER, t.headers.get());
    curl_easy_setopt(h, CURLOPT_POST, 1L);
    curl_easy_setopt(h, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(t.post.body.size()));
    curl_easy_setopt(h, CURLOPT_POSTFIELDS, t.post.body.c_str());
    curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, ignore_body);
    curl_easy_setopt(h, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(h, CURLOPT_ERRORBUFFER, t.error);
  }

  void collect(std::vector<Outcome>& out) {
    int left = 0;
    while (const CURLMsg* m = curl_multi_info_read(multi_.get(), &left)) {
      if (m->msg != CURLMSG_DONE) continue;
      CURL* h = m->easy_handle;
      const CURLcode code = m->data.result;
      const auto it = transfers_.find(h);
      long status = 0;
      curl_easy_getinfo(h, CURLINFO_RESPONSE_CODE, &status);
      Outcome outcome{it->second->post.ticket, static_cast<int>(status), ""};
      // An answer that broke off after its head has still said yes or no.
      if (code != CURLE_OK && !outcome.delivered()) {
        outcome.status = 0;
        outcome.error =
            one_line(it->second->error[0] ? it->second->error : curl_easy_strerror(code));
      }
      out.push_back(std::move(outcome));
      curl_multi_remove_handle(multi_.get(), h);
      transfers_.erase(it);
    }
  }

  const TransportOptions options_;
  std::unique_ptr<CURLM, MultiDelete> multi_;
  std::map<CURL*, std::unique_ptr<Transfer>> transfers_;
  std::vector<Outcome> failed_;  // before they began
};

}  // namespace

std::unique_ptr<Transport> make_curl_transport(TransportOptions options) {
  return std::make_unique<CurlTransport>(std::move(options));
}

}  // namespace clusterctl::notify
