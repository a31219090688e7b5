// What many connections cost: one process sends to another over N connections in turn, with the same number of messages
// under way and of receives posted whatever N is. By the interface that programs use, and what PACELINE_* says.
//
//   many_connections [--connections N] [--engines N] [--bytes N] [--window N] [--receives N] [--seconds S]
//                    [--lane NAME]
//
// Prints JSON: gbps of the sends that completed.
#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "paceline/context.h"
#include "tests/interop/udp_pingpong/raw_socket.h"

namespace paceline::interop {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

struct Settings {
  size_t connections = 1000;
  size_t bytes = 65536;    // of a message
  size_t window = 64;      // messages under way, of all connections together
  size_t receives = 1024;  // posted ahead, of all connections together; at least one each
  double seconds = 1;
  std::string lane = "udp";
  uint32_t engines = 1;
};

api::Context MakeContext(const Settings& settings) {
  auto options = api::ContextOptions::FromEnvironment();
  if (!options.ok()) Fail(options.status().message());
  options->lane = settings.lane;
  options->engines = settings.engines;
  if (settings.engines > 1) options->progress = api::ProgressMode::kThread;
  auto context = api::Context::Create(*options);
  if (!context.ok()) Fail(context.status().message());
  return *std::move(context);
}

// A handle as text, for RunBoth.
std::string Encode(const api::Handle& handle) {
  std::string text;
  for (const uint8_t byte : handle.bytes) {
    text += static_cast<char>('a' + byte / 16);
    text += static_cast<char>('a' + byte % 16);
  }
  return text;
}

api::Handle Decode(const std::string& text) {
  api::Handle handle;
  if (text.size() != 2 * handle.bytes.size()) Fail("the handle has the wrong length");
  for (size_t i = 0; i < handle.bytes.size(); ++i) {
    handle.bytes[i] = static_cast<uint8_t>((text[2 * i] - 'a') * 16 + text[2 * i + 1] - 'a');
  }
  return handle;
}

// Takes the connections, and receives into buffers of its own each, until it is ended.
void Serve(const Settings& settings, const std::function<void(const std::string&)>& publish) {
  const size_t each = std::max<size_t>(1, settings.receives / settings.connections);
  std::vector<uint8_t> memory(settings.bytes * each * settings.connections);  // outlives the context
  api::Context context = MakeContext(settings);
  auto listener = context.Listen();
  if (!listener.ok()) Fail(listener.status().message());
  publish(Encode(listener->handle()));

  std::vector<api::Connection> connections;
  std::unordered_map<uint32_t, size_t> number;  // by id
  const auto post = [&](size_t connection, uint64_t slot) {
    uint8_t* data = memory.data() + slot * settings.bytes;
    return connections[connection].Receive({data, settings.bytes}, 0, 0, slot) == api::PostResult::kOk;
  };
  while (connections.size() < settings.connections) {
    auto accepted = listener->WaitAccept(20s);
    if (!accepted.ok()) Fail(accepted.status().message());
    number[accepted->id()] = connections.size();
    connections.push_back(*std::move(accepted));
    for (size_t i = 0; i < each; ++i) {
      if (!post(connections.size() - 1, (connections.size() - 1) * each + i)) Fail("a receive was refused");
    }
  }
  std::array<api::Completion, 64> done;
  for (;;) {
    const size_t count = context.completions().Poll(done.data(), done.size());
    if (count == 0) context.Wait(100ms);
    for (size_t i = 0; i < count; ++i) {
      if (done[i].status != api::OperationStatus::kOk) return;  // the sender has ended
      if (!post(number.at(done[i].connection), done[i].user_data)) return;
    }
  }
}

double Ask(const Settings& settings, const std::string& server) {
  std::vector<uint8_t> memory(settings.bytes * settings.window, 1);  // outlives the context
  api::Context context = MakeContext(settings);
  const api::Handle handle = Decode(server);
  std::vector<api::Connection> connections;
  for (size_t i = 0; i < settings.connections; ++i) {
    auto connection = context.Connect(handle);
    if (!connection.ok()) Fail(connection.status().message());
    if (const api::Status status = connection->WaitEstablished(20s); !status.ok()) Fail(status.message());
    connections.push_back(*std::move(connection));
  }
  size_t next = 0;
  const auto send = [&](uint64_t slot) {
    uint8_t* data = memory.data() + slot * settings.bytes;
    api::Connection& connection = connections[next++ % connections.size()];
    if (connection.Send({data, settings.bytes}, 0, slot) != api::PostResult::kOk) Fail("a send was refused");
  };
  for (size_t slot = 0; slot < settings.window; ++slot) send(slot);
  const auto length = static_cast<int64_t>(settings.seconds * 1e9);
  // A quarter of the time, and a message on each connection, to warm up.
  int64_t start = NowNanos() + length / 4;
  uint64_t completed = 0, before = 0;
  bool warm = false;
  std::array<api::Completion, 64> done;
  for (;;) {
    const size_t count = context.completions().Poll(done.data(), done.size());
    if (count == 0) context.Wait(100ms);
    for (size_t i = 0; i < count; ++i) {
      if (done[i].status != api::OperationStatus::kOk) Fail(api::OperationStatusName(done[i].status));
      send(done[i].user_data);
    }
    completed += count;
    const int64_t now = NowNanos();
    if (!warm && now > start && completed >= connections.size()) {
      warm = true;
      start = now;
      before = completed;
    } else if (warm && now - start > length) {
      return static_cast<double>((completed - before) * settings.bytes) * 8 / static_cast<double>(now - start);
    }
  }
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Throughput over many connections between two processes");
  app.add_option("--connections", settings.connections, "that take turns")->check(CLI::Range(1, 10'000));
  app.add_option("--bytes", settings.bytes, "of a message")->check(CLI::Range(1, 1 << 24));
  app.add_option("--window", settings.window, "messages under way, all connections")->check(CLI::Range(1, 4096));
  app.add_option("--receives", settings.receives, "posted ahead, all connections")->check(CLI::Range(1, 4096));
  app.add_option("--seconds", settings.seconds, "how long")->check(CLI::Range(0.01, 600.0));
  app.add_option("--lane", settings.lane, "udp, shm, ...");
  app.add_option("--engines", settings.engines,
                 "of each process's context, each with a thread; the connections are spread over them")
      ->check(CLI::Range(1, 16));
  CLI11_PARSE(app, argc, argv);

  double gbps = 0;
  RunBoth([&](const auto& publish) { Serve(settings, publish); },
          [&](const std::string& server) { gbps = Ask(settings, server); });
  std::cout << nlohmann::ordered_json{{"connections", settings.connections}, {"gbps", gbps}}.dump() << std::endl;
  return 0;
}

}  // namespace
}  // namespace paceline::interop

int main(int argc, char** argv) { return paceline::interop::Main(argc, argv); }
