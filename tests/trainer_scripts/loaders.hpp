#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "sconce/training/any_batches.hpp"
#include "trainer_scripts/trace.hpp"

namespace trainer_scripts {

using nlohmann::json;

/// The exception that a source throws when an item is bad.
struct BadItem {
  int64_t item = 0;
};

/// The starting point of a loop that does not start at the next epoch.
struct Start {
  int64_t batch = 0;
  int64_t epoch = 0;
};

/// Iterates over a loader of any type, one batch at a time.
struct Loop {
  /// Returns the next batch, or nothing at the end. Rethrows exceptions from the loader.
  std::function<std::optional<sconce::data::Dataset>()> next;
  /// Returns the item that the loader reports for the exception, or -1 if the loader does not
  /// report an item.
  std::function<int64_t()> failed_item;
};

/// A loader of any type.
class AnyLoader {
 public:
  virtual ~AnyLoader() = default;
  virtual std::shared_ptr<AnyLoader> copy() const = 0;
  virtual sconce::AnyBatches for_trainer() const = 0;
  virtual void set_epoch(int64_t epoch) = 0;
  virtual Loop begin(const std::optional<Start>& start) const = 0;
};

/// Creates the loader that the script describes, using `rows` as its items.
std::shared_ptr<AnyLoader> make_loader(const json& spec, const sconce::data::Dataset& rows);

}  // namespace trainer_scripts
