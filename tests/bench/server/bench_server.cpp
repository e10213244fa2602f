// The baseline: what cpp-httplib alone does with the same bytes. `bench_server FILE` answers every
// GET with the content of FILE on a free port of 127.0.0.1, says which, and ends with its
// standard input. Set up as well as the library allows: no delay, long keep-alive, a thread for
// each connection of the bench.
#include <httplib.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>
#include <thread>

int main(int argc, char** argv) {
  if (argc != 2) return 64;
  std::ifstream file(argv[1]);
  std::stringstream content;
  content << file.rdbuf();
  const std::string body = content.str();

  httplib::Server server;
  server.new_task_queue = [] { return new httplib::ThreadPool(16); };
  server.set_tcp_nodelay(true);
  server.set_keep_alive_max_count(1'000'000);
  server.set_keep_alive_timeout(60);
  server.Get(".*", [&](const httplib::Request&, httplib::Response& answer) {
    answer.set_content(body, "application/json");
  });
  const int port = server.bind_to_any_port("127.0.0.1");
  std::thread thread([&] { server.listen_after_bind(); });
  std::printf("%d\n", port);
  std::fflush(stdout);
  std::string line;
  while (std::getline(std::cin, line)) {
  }
  server.stop();
  thread.join();
  return 0;
}
