// A daemon made of answers given in advance: "GET /v1/nodes" -> queue of answers, the last one
// stays. Records every request.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "client/rest_client.h"
#include "client/sse_reader.h"

namespace clusterctl::fakes {

class FakeRest final : public client::RestClient {
 public:
  struct Answer {
    int status = 200;
    Json json;
    std::string text;  // of a stream, or instead of json
    Error lost;        // when status is 0: the connection's error, after `text` of a stream
  };
  std::map<std::string, std::deque<Answer>> answers;  // by "METHOD target"
  std::vector<client::Request> requests;

  void on(const std::string& what, Json json, int status = 200) {
    answers[what].push_back({status, std::move(json), "", {}});
  }
  void on_stream(const std::string& what, std::string text) {
    answers[what].push_back({200, {}, std::move(text), {}});
  }
  void on_lost(const std::string& what, const std::string& reason, std::string text = "") {
    answers[what].push_back(
        {0,
         {},
         std::move(text),
         Error{Code::kUnavailable, reason, "no daemon answers at fake", "", {}}});
  }
  void on_problem(const std::string& what, int status, const std::string& code,
                  const std::string& detail, const std::string& hint = "",
                  Json problems = Json::array()) {
    on(what,
       {{"status", status},
        {"code", code},
        {"detail", detail},
        {"hint", hint},
        {"problems", problems}},
       status);
  }

  std::vector<std::string> seen() const {
    std::vector<std::string> out;
    for (const auto& r : requests) out.push_back(r.method + " " + client::target(r));
    return out;
  }
  // Body of the last request with this method and path.
  Json body(const std::string& method, const std::string& path) const {
    for (auto it = requests.rbegin(); it != requests.rend(); ++it) {
      if (it->method == method && it->path == path) return it->body.value_or(Json());
    }
    return "no such request";
  }

  Result<client::Response> send(const client::Request& request) override {
    const Answer a = take(request);
    if (a.status == 0) return fail(a.lost);
    if (a.status >= 300) return fail(client::error_from_answer(a.status, dump_json(a.json)));
    return client::Response{a.status, "", a.json.is_null() ? a.text : dump_json(a.json), a.json};
  }
  Status stream(const client::Request& request, const client::Receive& receive,
                const client::KeepGoing& keep_going) override {
    const Answer a = take(request);
    if (a.status >= 300) return fail(client::error_from_answer(a.status, dump_json(a.json)));
    for (size_t at = 0; at < a.text.size(); at += piece) {
      if (!keep_going()) return {};
      if (!receive(std::string_view(a.text).substr(at, piece))) return {};
    }
    if (!keep_going()) return {};
    if (a.status == 0) return fail(a.lost);
    return {};
  }
  std::string server() const override { return "fake"; }

  size_t piece = 7;  // streams come in pieces of so many bytes

 private:
  Answer take(const client::Request& request) {
    requests.push_back(request);
    auto& queue = answers[request.method + " " + client::target(request)];
    if (queue.empty())
      return {404,
              {{"detail", "the fake has no " + request.method + " " + client::target(request)}},
              "",
              {}};
    Answer a = queue.front();
    if (queue.size() > 1) queue.pop_front();
    return a;
  }
};

class FakeTimer final : public client::Timer {
 public:
  std::chrono::milliseconds at{0};
  std::vector<std::chrono::milliseconds> sleeps;
  std::chrono::milliseconds now() const override { return at; }
  void sleep(std::chrono::milliseconds d) override {
    sleeps.push_back(d);
    at += d;
  }
};

}  // namespace clusterctl::fakes
