#include "report/event_histogram.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/histogram.h>
#include <ATen/ops/isfinite.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "report/event_image.hpp"

namespace sconce::utils::tensorboard {

namespace {

// Multiplies repeatedly, as Python does, so that the edges match bit for bit.
std::vector<double> edges_of_tensorflow() {
  std::vector<double> edges = {0};
  for (double edge = 1e-12; edge < 1e20; edge *= 1.1) edges.push_back(edge);
  std::vector<double> all;
  for (size_t i = edges.size(); i-- > 1;) all.push_back(-edges[i]);
  all.insert(all.end(), edges.begin(), edges.end());
  return all;
}

void check(const std::string& caller, const AddHistogramOptions& options) {
  const auto& edges = options.bins;
  const auto is_nan = [](double edge) { return std::isnan(edge); };
  TORCH_CHECK(edges.size() != 1 && std::none_of(edges.begin(), edges.end(), is_nan) &&
                  std::is_sorted(edges.begin(), edges.end()),
              caller, ": expected bins with at least two ascending edges, got ", edges);
  TORCH_CHECK(options.max_bins.value_or(1) >= 1, caller,
              ": expected max_bins to be at least 1, got ", *options.max_bins);
}

// Merges groups of `size` neighboring bins. The last group may contain fewer bins.
void merge(int64_t size, std::vector<double>& edges, std::vector<double>& counts) {
  std::vector<double> fewer_edges, fewer_counts;
  for (size_t i = 0; i < counts.size(); i += static_cast<size_t>(size)) {
    fewer_edges.push_back(edges[i]);
    const auto end = std::min(i + static_cast<size_t>(size), counts.size());
    double sum = 0;
    for (size_t k = i; k < end; ++k) sum += counts[k];
    fewer_counts.push_back(sum);
  }
  fewer_edges.push_back(edges.back());
  edges = std::move(fewer_edges);
  counts = std::move(fewer_counts);
}

}  // namespace

RawHistogram make_histogram(const std::string& caller, const at::Tensor& values,
                            const AddHistogramOptions& options) {
  check(caller, options);
  const at::Tensor flat = values_on_cpu(caller, values).to(at::kDouble).flatten();
  TORCH_CHECK(at::isfinite(flat).all().item<bool>(), caller,
              ": expected finite values, got NaN or infinity");
  std::vector<double> edges = options.bins.empty() ? edges_of_tensorflow() : options.bins;
  const at::Tensor counted = std::get<0>(at::histogram(
      flat, at::from_blob(edges.data(), {std::ssize(edges)}, at::TensorOptions(at::kDouble))));
  const auto* first_count = counted.const_data_ptr<double>();
  std::vector<double> counts(first_count, first_count + counted.numel());
  const int64_t bins = std::ssize(counts);
  if (options.max_bins && bins > *options.max_bins) merge(bins / *options.max_bins, edges, counts);

  const auto is_full = [](double count) { return count > 0; };
  const auto begin = std::find_if(counts.begin(), counts.end(), is_full);
  TORCH_CHECK(begin != counts.end(), caller, ": expected a value from ", edges.front(), " to ",
              edges.back(), ", got none");
  const auto end = std::find_if(counts.rbegin(), counts.rend(), is_full).base();
  RawHistogram histogram = {.min = flat.min().item<double>(),
                            .max = flat.max().item<double>(),
                            .num = static_cast<double>(flat.numel()),
                            .sum = flat.sum().item<double>(),
                            .sum_squares = flat.dot(flat).item<double>()};
  // Event files store only the right edges of buckets. Therefore, an empty bucket is added on the
  // left. The right edge of the empty bucket is the left edge of the first bucket.
  histogram.bucket_limits.assign(edges.begin() + (begin - counts.begin()),
                                 edges.begin() + (end - counts.begin()) + 1);
  histogram.bucket_counts.assign(begin, end);
  histogram.bucket_counts.insert(histogram.bucket_counts.begin(), 0);
  return histogram;
}

}  // namespace sconce::utils::tensorboard
