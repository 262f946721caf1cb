#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "sconce/training/any_batches.hpp"
#include "trainer_scripts/trace.hpp"

namespace trainer_scripts {

using nlohmann::json;

/// The exception that a source throws for a bad item.
struct BadItem {
  int64_t item = 0;
};

/// The start of a loop that does not begin at the next epoch.
struct Start {
  int64_t batch = 0;
  int64_t epoch = 0;
};

/// Loops over a loader of any type, one batch at a time.
struct Loop {
  /// Returns the next batch, or nothing at the end. Throws the loader's exceptions.
  std::function<std::optional<sconce::data::Dataset>()> next;
  /// Returns the item that the loader reports for the loop's exception, or -1 if it reports none.
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

/// Creates the loader that the script describes, with `rows` as items.
std::shared_ptr<AnyLoader> make_loader(const json& spec, const sconce::data::Dataset& rows);

}  // namespace trainer_scripts
