// What clients of the benches do.
//
//   bench_load get PORT TOKEN PATH CONNECTIONS SECONDS
//     each connection asks again as soon as it has its answer; prints JSON: requests per second and
//     milliseconds of the median, the 99th of 100 and the longest.
//   bench_load fanout PORT TOKEN FOLLOWERS ROUNDS SINCE
//     followers of /v1/events after number SINCE, the newest; in each round a label of the node
//     "n0" is changed, and the time from sending that request to the arrival of the event is taken
//     for each follower. Beside it the same bytes written by one thread to as many pairs of
//     sockets, read in the same way.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::exit(1);
}

int connect_to(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) give_up("connect");
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

void send_all(int fd, const std::string& text) {
  size_t sent = 0;
  while (sent < text.size()) {
    const ssize_t n = send(fd, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) give_up("send");
    sent += static_cast<size_t>(n);
  }
}

std::string request(const char* method, const std::string& path, const std::string& token,
                    const std::string& body = "") {
  std::string out = fmt::format("{} {} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {}\r\n",
                                method, path, token);
  if (!body.empty())
    out += fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n", body.size());
  return out + "\r\n" + body;
}

// Reads one answer with a length; false when it is not a 200.
bool read_answer(int fd, std::string& buffer, std::vector<char>& piece) {
  buffer.clear();
  size_t wanted = 0, got = 0;
  while (wanted == 0 || got < wanted) {
    const ssize_t n = recv(fd, piece.data(), piece.size(), 0);
    if (n <= 0) give_up("recv");
    got += static_cast<size_t>(n);
    if (wanted != 0) continue;
    buffer.append(piece.data(), static_cast<size_t>(n));
    const size_t end = buffer.find("\r\n\r\n");
    if (end == std::string::npos) continue;
    const size_t at = buffer.find("Content-Length: ");
    if (at == std::string::npos || at > end) return false;
    wanted = end + 4 + std::strtoul(buffer.c_str() + at + 16, nullptr, 10);
  }
  return buffer.starts_with("HTTP/1.1 200");
}

double at(const std::vector<double>& sorted, double share) {
  return sorted[std::min(sorted.size() - 1,
                         static_cast<size_t>(share * static_cast<double>(sorted.size())))];
}

std::string percentiles(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return fmt::format("\"p50\": {:.3f}, \"p99\": {:.3f}, \"max\": {:.3f}", at(times, 0.5),
                     at(times, 0.99), times.back());
}

int get(int port, const std::string& token, const std::string& path, int connections,
        double seconds) {
  std::vector<std::vector<double>> times(static_cast<size_t>(connections));
  const auto begin = Clock::now();
  std::vector<std::thread> threads;
  for (auto& mine : times) {
    threads.emplace_back([&] {
      const int fd = connect_to(port);
      const std::string ask = request("GET", path, token);
      std::string buffer;
      std::vector<char> piece(256 << 10);
      while (ms_since(begin) < seconds * 1000) {
        const auto asked = Clock::now();
        send_all(fd, ask);
        if (!read_answer(fd, buffer, piece)) give_up("not a 200");
        mine.push_back(ms_since(asked));
      }
      close(fd);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double took = ms_since(begin) / 1000;
  std::vector<double> all;
  for (const auto& mine : times) all.insert(all.end(), mine.begin(), mine.end());
  fmt::print("{{\"requests\": {}, \"rate\": {:.1f}, {}}}\n", all.size(),
             static_cast<double>(all.size()) / took, percentiles(all));
  return 0;
}

// Waits until each of the descriptors has received bytes that end an event, and adds when.
void collect(int epoll, size_t number, Clock::time_point begin, std::vector<double>& times) {
  std::vector<char> piece(64 << 10);
  std::vector<epoll_event> events(256);
  for (size_t left = number; left > 0;) {
    const int n = epoll_wait(epoll, events.data(), static_cast<int>(events.size()), 20'000);
    if (n <= 0) give_up("nothing came");
    for (int i = 0; i < n; ++i) {
      const ssize_t got =
          recv(events[static_cast<size_t>(i)].data.fd, piece.data(), piece.size(), 0);
      if (got <= 0) give_up("a follower was dropped");
      if (!std::string_view(piece.data(), static_cast<size_t>(got)).ends_with("\n\n\r\n")) continue;
      times.push_back(ms_since(begin));
      --left;
    }
  }
}

void watch(int epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) give_up("epoll_ctl");
}

int fanout(int port, const std::string& token, size_t followers, int rounds,
           const std::string& since) {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  std::vector<char> piece(64 << 10);
  for (size_t i = 0; i < followers; ++i) {
    const int fd = connect_to(port);
    send_all(fd, request("GET", "/v1/events?follow=true&since=" + since, token));
    // The head; nothing else is sent yet.
    if (recv(fd, piece.data(), piece.size(), 0) <= 0) give_up("no answer");
    watch(epoll, fd);
  }
  const int writer = connect_to(port);
  std::string buffer;
  std::vector<double> times, accepted;
  for (int round = 0; round < rounds; ++round) {
    const auto begin = Clock::now();
    send_all(writer, request("PATCH", "/v1/nodes/n0", token,
                             fmt::format("{{\"spec\": {{\"labels\": {{\"round\": \"{}-{}\"}}}}}}",
                                         getpid(), round)));
    collect(epoll, followers, begin, times);
    if (!read_answer(writer, buffer, piece)) give_up("not a 200");
    accepted.push_back(ms_since(begin));
  }

  const int plain = epoll_create1(EPOLL_CLOEXEC);
  std::vector<int> ends;
  for (size_t i = 0; i < followers; ++i) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) give_up("socketpair");
    ends.push_back(pair[0]);
    watch(plain, pair[1]);
  }
  std::vector<double> baseline;
  const std::string text = std::string(180, 'x') + "\n\n\r\n";
  for (int round = 0; round < rounds; ++round) {
    const auto begin = Clock::now();
    std::thread sender([&] {
      for (const int fd : ends) send_all(fd, text);
    });
    collect(plain, followers, begin, baseline);
    sender.join();
  }
  fmt::print("{{\"followers\": {}, \"events\": {}, \"fanout\": {{{}}}, \"baseline\": {{{}}}}}\n",
             followers, rounds, percentiles(times), percentiles(baseline));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "get" && argc == 7)
    return get(std::atoi(argv[2]), argv[3], argv[4], std::atoi(argv[5]), std::atof(argv[6]));
  if (mode == "fanout" && argc == 7)
    return fanout(std::atoi(argv[2]), argv[3], static_cast<size_t>(std::atoi(argv[4])),
                  std::atoi(argv[5]), argv[6]);
  std::fprintf(stderr, "usage: see the head of bench_load.cpp\n");
  return 64;
}
