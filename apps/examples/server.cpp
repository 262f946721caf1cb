// Serves a network over HTTP. Requests that arrive together are answered in a single batch, and the
// network's file can be replaced while the server is running.
//
//   POST /predict {"x": [[64 numbers], ...]} replies {"outputs": [...], "version": 1}.
//   POST /reload reloads the file and replies {"version": 2}.
//   GET /health replies {"version": 2, "requests": 9, "p50_ms": ..., "p99_ms": ...}.
//
// Errors look like {"error": "expected ..., got ..."}. The status for an invalid request is 400.
#include <httplib.h>
#include <torch/torch.h>
#include <CLI/CLI.hpp>
#include <csignal>
#include <future>
#include <iostream>
#include <latch>
#include <nlohmann/json.hpp>
#include <sconce/sconce.hpp>
#include "served_model.hpp"

using Clock = std::chrono::steady_clock;
using nlohmann::json;

constexpr size_t max_body = 1'000'000;  // bytes per request

struct Options {
  std::string weights, program, package;  // exactly one is set
  std::string host = "127.0.0.1";
  int port = 8080, connections = 64, workers = 1;
  int64_t max_batch = 16, wait_ms = 1;
};

std::shared_ptr<const Model> load(const Options& o, int64_t version) {
  if (!o.weights.empty()) return std::make_shared<Model>(Model{version, load_weights(o.weights)});
  const auto run = o.program.empty() ? load_package(o.package, o.workers) : load_program(o.program);
  return std::make_shared<Model>(Model{version, nullptr, checked(run, o.max_batch)});
}

struct Answer {
  Tensor outputs = {};
  int64_t version = 0;
};

struct Question {
  Tensor x = {};  // (rows, width)
  std::promise<Answer> answer = {};
  Clock::time_point arrived = Clock::now();
};

// The queue of questions waiting for a worker. Each connection has at most one question in the
// queue.
class Queue {
 public:
  Queue(int64_t max_rows, int64_t wait_ms) : max_rows_(max_rows), wait_(wait_ms) {}

  std::future<Answer> push(const Tensor& x) {
    const std::lock_guard lock(mutex_);
    rows_ += x.size(0);
    changed_.notify_all();
    return questions_.emplace_back(Question{x}).answer.get_future();
  }

  // Waits for the first question. Then waits until enough rows have arrived or the first question
  // has waited for the maximum time. Returns an empty batch after `close`.
  std::vector<Question> pop_batch() {
    const std::lock_guard one_worker_at_a_time(gathering_);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return closed_ || !questions_.empty(); });
    if (questions_.empty()) return {};
    const auto is_enough = [&] { return closed_ || rows_ >= max_rows_; };
    changed_.wait_until(lock, questions_.front().arrived + wait_, is_enough);
    std::vector<Question> batch;
    int64_t room = max_rows_;
    while (!questions_.empty() && questions_.front().x.size(0) <= room) {
      room -= questions_.front().x.size(0);
      batch.push_back(std::move(questions_.front()));
      questions_.pop_front();
    }
    rows_ -= max_rows_ - room;
    return batch;
  }

  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  const int64_t max_rows_;
  const std::chrono::milliseconds wait_;
  std::mutex mutex_, gathering_;
  std::condition_variable changed_;
  std::deque<Question> questions_;
  int64_t rows_ = 0;
  bool closed_ = false;
};

// The state shared by the server's threads.
class Server {
 public:
  explicit Server(const Options& options)
      : o(options), queue(o.max_batch, o.wait_ms), model_(load(o, 1)) {}

  std::shared_ptr<const Model> model() {
    const std::lock_guard lock(mutex_);
    return model_;
  }

  // If the new file does not match, the server keeps the current version. save_safetensors replaces
  // files atomically, so this function never loads a partially written file.
  int64_t reload() {
    const std::lock_guard one_at_a_time(reloading_);
    const auto next = load(o, model()->version + 1);
    const std::lock_guard lock(mutex_);
    model_ = next;
    return next->version;
  }

  void add_latency(Clock::duration latency) {
    const std::lock_guard lock(mutex_);
    if (ms_.size() < 10'000) ms_.emplace_back();
    ms_[requests_++ % 10'000] = std::chrono::duration<double, std::milli>(latency).count();
  }

  json health() {
    const std::lock_guard lock(mutex_);
    auto ms = ms_;
    std::sort(ms.begin(), ms.end());
    const auto at = [&](size_t percent) { return ms.empty() ? 0 : ms[ms.size() * percent / 100]; };
    return {{"version", model_->version},
            {"requests", requests_},
            {"p50_ms", at(50)},
            {"p99_ms", at(99)}};
  }

  const Options o;
  Queue queue;

 private:
  std::mutex mutex_, reloading_;
  std::shared_ptr<const Model> model_;
  std::vector<double> ms_;  // of the last 10,000 requests
  size_t requests_ = 0;
};

// Answers batches until the queue is closed. Each batch uses a single version of the network.
void work(Server& server, std::latch& warm) {
  const torch::NoGradGuard no_grad;  // the setting is per thread
  CapturedNet captured(server.o.max_batch);
  warm.count_down();
  for (auto batch = server.queue.pop_batch(); !batch.empty(); batch = server.queue.pop_batch()) {
    try {
      std::vector<Tensor> xs;
      std::vector<int64_t> rows;
      for (const auto& question : batch) rows.push_back(xs.emplace_back(question.x).size(0));
      const auto model = server.model();
      const auto x = torch::cat(xs);
      const auto outputs =
          (model->run ? model->run(x) : captured(*model, x)).split_with_sizes(rows);
      for (size_t i = 0; i < batch.size(); ++i) {
        batch[i].answer.set_value({outputs[i], model->version});
      }
    } catch (...) {
      for (auto& question : batch) question.answer.set_exception(std::current_exception());
    }
  }
}

Tensor parse_rows(const std::string& body, int64_t max_rows) {
  std::vector<std::vector<float>> rows;
  try {
    json::parse(body).at("x").get_to(rows);
  } catch (const json::exception&) {
    TORCH_CHECK_VALUE(false, "expected {\"x\": [[numbers], ...]}, got ", body.substr(0, 40));
  }
  TORCH_CHECK_VALUE(!rows.empty() && rows.size() <= static_cast<size_t>(max_rows), "expected 1 to ",
                    max_rows, " rows, got ", rows.size());
  std::vector<Tensor> xs;
  for (const auto& row : rows) {
    TORCH_CHECK_VALUE(row.size() == width, "expected rows of ", width, " numbers, got ",
                      row.size());
    xs.push_back(torch::tensor(row));
  }
  const auto x = torch::stack(xs);
  TORCH_CHECK_VALUE(x.isfinite().all().item<bool>(),
                    "expected numbers in the range of float32, got a value outside this range");
  return x;
}

json to_json(const Answer& answer) {
  json rows = json::array();
  for (const auto& row : answer.outputs.contiguous().unbind()) {
    const auto* numbers = row.const_data_ptr<float>();
    rows.push_back(std::vector<float>(numbers, numbers + row.numel()));
  }
  return {{"outputs", rows}, {"version", answer.version}};
}

void reply(httplib::Response& response, int status, const json& body) {
  response.status = status;
  // An error message may quote bytes that are not valid UTF-8.
  const auto text = body.dump(-1, ' ', false, json::error_handler_t::replace);
  response.set_content(text + "\n", "application/json");
}

// Replies with the function's result or with its error. A ValueError means that the request is
// invalid.
template <class Function>
void reply_with(httplib::Response& response, int status_of_error, const Function& function) try {
  reply(response, 200, function());
} catch (const c10::ValueError& error) {
  reply(response, 400, {{"error", error.what_without_backtrace()}});
} catch (const c10::Error& error) {
  reply(response, status_of_error, {{"error", error.what_without_backtrace()}});
} catch (const std::exception& error) {
  reply(response, status_of_error, {{"error", error.what()}});
}

void add_routes(httplib::Server& http, Server& server) {
  using httplib::Request, httplib::Response;
  http.Post("/predict", [&](const Request& request, Response& response) {
    reply_with(response, 500, [&] {
      const auto arrived = Clock::now();
      const auto answer = server.queue.push(parse_rows(request.body, server.o.max_batch)).get();
      server.add_latency(Clock::now() - arrived);
      return to_json(answer);
    });
  });
  http.Post("/reload", [&](const Request&, Response& response) {
    reply_with(response, 409, [&] { return json{{"version", server.reload()}}; });
  });
  http.Get("/health",
           [&](const Request&, Response& response) { reply(response, 200, server.health()); });
  // Version 0.11 of the HTTP library enforces the size limit only for bodies with a Content-Length,
  // so all other bodies are rejected.
  http.set_pre_routing_handler([](const Request& request, Response& response) {
    const bool is_limited = request.method == "GET" || request.has_header("Content-Length");
    if (is_limited && !request.has_header("Transfer-Encoding") &&
        !request.has_header("Content-Encoding")) {
      return httplib::Server::HandlerResponse::Unhandled;
    }
    response.set_header("Connection", "close");  // because the body remains unread
    reply(response, 411, {{"error", "expected a plain body with a Content-Length"}});
    return httplib::Server::HandlerResponse::Handled;
  });
  http.set_error_handler([](const Request& request, Response& response) {
    if (!response.body.empty()) return;
    const std::string expected = response.status == 413
                                     ? "a body of at most " + std::to_string(max_body) + " bytes"
                                     : "POST /predict, POST /reload, or GET /health";
    reply(response, response.status,
          {{"error", "expected " + expected + ", got " + request.method + " " + request.path}});
  });
}

// Binds the port and returns its number.
int bind(httplib::Server& http, const Options& o) {
  http.set_payload_max_length(max_body);
  http.set_keep_alive_max_count(std::numeric_limits<size_t>::max());
  http.set_tcp_nodelay(true);  // the headers and the body of a reply are sent separately
  http.new_task_queue = [threads = o.connections] { return new httplib::ThreadPool(threads); };
  // By default, the HTTP library allows several servers to share a port.
  http.set_socket_options([](int socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  const int port = o.port == 0 ? http.bind_to_any_port(o.host) : o.port;
  TORCH_CHECK(port > 0 && (o.port == 0 || http.bind_to_port(o.host, port)),
              "expected a free port, got ", o.host, ':', o.port, ": ", std::strerror(errno));
  return port;
}

// Serves requests until SIGTERM or SIGINT arrives, and then finishes the requests that are in
// progress.
void serve(const Options& o) {
  sigset_t stop_signals;
  sigemptyset(&stop_signals);
  sigaddset(&stop_signals, SIGTERM);
  sigaddset(&stop_signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &stop_signals, nullptr);  // blocked in all threads, for sigtimedwait
  sconce::tune_memory();
  torch::set_num_threads(1);  // threads per operator, because the workers use the cores

  Server server(o);
  httplib::Server http;
  add_routes(http, server);
  const int port = bind(http, o);
  std::vector<std::thread> workers;
  std::latch warm(o.workers);
  for (int i = 0; i < o.workers; ++i) workers.emplace_back(work, std::ref(server), std::ref(warm));
  warm.wait();

  auto listening = std::async(std::launch::async, [&] { return http.listen_after_bind(); });
  const auto has_ended = [&] {
    return listening.wait_for(std::chrono::milliseconds(1)) == std::future_status::ready;
  };
  while (!http.is_running() && !has_ended()) continue;  // stop() has no effect before this point
  std::cout << "version 1 on http://" << o.host << ':' << port << std::endl;
  const timespec time{0, 50'000'000};
  while (sigtimedwait(&stop_signals, nullptr, &time) < 0 && !has_ended()) continue;
  http.stop();
  const bool was_stopped = listening.get();
  server.queue.close();
  for (auto& worker : workers) worker.join();
  std::cout << server.health() << std::endl;
  TORCH_CHECK(was_stopped, "expected connections on port ", port, ", got an error");
}

int main(int argc, char** argv) try {
  CLI::App app("Serves a network over HTTP.");
  Options o;
  auto* file = app.add_option_group("file")->require_option(1);
  file->add_option("--weights", o.weights,
                   "A safetensors file with weights for this program's network");
  file->add_option("--program", o.program, "A recorded program with a dynamic batch size");
  file->add_option("--package", o.package, "An AOTInductor package with a dynamic batch size");
  app.add_option("--host", o.host);
  app.add_option("--port", o.port, "Port to listen on; 0 selects a free one")
      ->check(CLI::Range(0, 65535));
  app.add_option("--workers", o.workers, "Number of compute threads")->check(CLI::Range(1, 1024));
  app.add_option("--connections", o.connections,
                 "Maximum number of concurrent connections; further connections wait")
      ->check(CLI::Range(1, 10'000));
  app.add_option("--max-batch", o.max_batch, "Maximum number of rows per batch")
      ->check(CLI::Range(1, 4096));
  app.add_option("--wait-ms", o.wait_ms, "Milliseconds to wait for additional rows")
      ->check(CLI::Range(0, 10'000));
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return std::string("server: ") + error.what() + " (--help lists the options)\n";
  });
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  serve(o);
} catch (const c10::Error& error) {
  std::cerr << "server: " << error.what_without_backtrace() << '\n';
  return 1;
} catch (const std::exception& error) {
  std::cerr << "server: " << error.what() << '\n';
  return 1;
}
