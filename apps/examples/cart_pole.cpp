// Trains an agent to balance a pole on a simulated cart, using a policy gradient.
#include <torch/torch.h>
#include <cmath>
#include <cstdio>
#include <sconce/sconce.hpp>

// A pole hinged to a cart. The cart is pushed left or right 50 times per second.
class CartPole {
 public:
  CartPole() {
    const auto start = 0.1 * torch::rand(4) - 0.05;
    place_ = start[0].item<double>(), speed_ = start[1].item<double>();
    angle_ = start[2].item<double>(), spin_ = start[3].item<double>();
  }
  torch::Tensor observe() const { return torch::tensor({place_, speed_, angle_, spin_}); }

  // Returns true if the pole is still upright and the cart is still on its track.
  bool step(bool right) {
    const double force = right ? 10 : -10, sine = std::sin(angle_), cosine = std::cos(angle_);
    const double push = (force + 0.05 * spin_ * spin_ * sine) / 1.1;
    const double turn = (9.8 * sine - cosine * push) / (2.0 / 3 - 0.05 * cosine * cosine / 1.1);
    place_ += 0.02 * speed_;
    speed_ += 0.02 * (push - 0.05 * turn * cosine / 1.1);
    angle_ += 0.02 * spin_;
    spin_ += 0.02 * turn;
    return std::abs(place_) < 2.4 && std::abs(angle_) < 0.21;
  }

 private:
  double place_, speed_, angle_, spin_;  // m, m/s, rad, rad/s
};

// Returns the sum of the rewards from each step onward, discounted by a factor of 0.99 per step.
torch::Tensor returns_of(int64_t steps) {
  std::vector<double> returns(steps);
  double later = 0;
  for (int64_t i = steps - 1; i >= 0; --i) later = returns[i] = 1 + 0.99 * later;
  const auto all = torch::tensor(returns);
  return (all - all.mean()) / (all.std() + 1e-6);
}

int main() {
  sconce::tune_memory();
  sconce::tune_threads();
  torch::manual_seed(0);
  torch::nn::Linear hidden(4, 32), output(32, 1);  // argument evaluation order is unspecified
  torch::nn::Sequential policy(hidden, torch::nn::ReLU(), output);
  sconce::optim::Adam adam(policy->parameters(), torch::optim::AdamOptions(0.01));
  // Replaying the operators is faster than calling them, which matters because the simulator waits
  // for each action.
  sconce::CapturedStep act(sconce::cpu(), [&](const std::vector<torch::Tensor>& observation) {
    const torch::NoGradGuard no_grad;
    return std::vector{policy->forward(observation[0]).sigmoid().bernoulli()};
  });
  const sconce::Stopwatch stopwatch;
  int64_t steps = 0, steps_before = 0;
  for (int episode = 1; episode <= 200; ++episode) {
    CartPole world;
    std::vector<torch::Tensor> observations;
    std::vector<float> actions;
    for (bool is_up = true; is_up && actions.size() < 200;) {
      observations.push_back(world.observe());
      actions.push_back(act({observations.back()})[0].item<float>());
      is_up = world.step(actions.back() == 1);
    }

    const auto logits = policy->forward(torch::stack(observations)).squeeze(1);
    const auto loss = torch::binary_cross_entropy_with_logits(logits, torch::tensor(actions),
                                                              returns_of(std::ssize(actions)));
    adam.zero_grad();
    loss.backward();
    adam.step();
    steps += std::ssize(actions);
    if (episode % 50 == 0) {
      std::printf("episodes %d to %d: %.1f steps on average\n", episode - 49, episode,
                  static_cast<double>(steps - steps_before) / 50);
      steps_before = steps;
    }
  }
  std::fprintf(stderr, "%.0f steps/s\n", static_cast<double>(steps) / stopwatch.seconds());
}
