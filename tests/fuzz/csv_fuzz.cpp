#include "sconce/io/csv.hpp"

#include "fuzz/target.hpp"

using sconce::io::CsvOptions;
using sconce::io::CsvTable;
using sconce::test::expect;
using sconce::test::folder;

namespace {

bool same(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  return a.scalar_type() == b.scalar_type() && a.nan_to_num(0.5).equal(b.nan_to_num(0.5));
}

void check(const CsvTable& table, const CsvOptions& options) {
  const int64_t rows = table.data.size(0);
  expect(table.data.dim() == 2 && rows > 0, "a table has no rows");
  expect(table.data.size(1) == static_cast<int64_t>(table.features.size()),
         "there is not one name for each feature");
  expect(!table.data.isinf().any().item<bool>(), "a number is infinite");
  expect(options.keep_missing || !table.data.isnan().any().item<bool>(), "a value is missing");
  expect(options.skip_bad || table.skipped == 0, "a row was left out");
  int64_t first = 0;
  for (const auto& column : table.columns) {
    const auto count = static_cast<int64_t>(column.categories.size());
    if (!options.target.empty() && column.name == options.target) {
      expect(table.target.size(0) == rows && !table.target.isnan().any().item<bool>(),
             "a target is missing");
      continue;
    }
    const auto features = table.data.slice(1, first, first + std::max<int64_t>(count, 1));
    expect(count == 0 || features.sum(1).eq(1).all().item<bool>(), "a row is of no category");
    first += features.size(1);
  }
}

}  // namespace

// The first byte selects the options, and the remaining bytes are the file contents.
SCONCE_FUZZ_TARGET(csv)(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const uint8_t bits = data[0];
  CsvOptions options = {.delimiter = ",;\t "[bits & 3],
                        .keep_missing = (bits & 4) != 0,
                        .skip_bad = (bits & 8) != 0,
                        .max_categories = 8};
  if ((bits & 16) != 0) options.names = {"a", "b", "c"};
  if ((bits & 32) != 0) options.target = "b";
  if ((bits & 64) != 0) options.categories = {"a"};
  if ((bits & 128) != 0) options.na_values = {"1", "x"};
  const auto file = folder().write("in.csv", sconce::test::text(data + 1, size - 1));
  CsvTable table;
  try {
    table = read_csv(file, options);
  } catch (const c10::Error&) {
    return 0;
  }
  check(table, options);
  options.categories.clear();
  options.columns = table.columns;
  const auto again = read_csv(file, options);
  expect(same(table.data, again.data) && same(table.target, again.target) &&
             table.skipped == again.skipped && table.features == again.features,
         "by its own columns the table is another");
  return 0;
}
