// Tests the thread-safe operations on trainers, batches, metrics, and process groups.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "sconce/distributed/data_parallel.hpp"
#include "sconce/distributed/distributed_data_parallel.hpp"
#include "sconce/io/csv.hpp"
#include "sconce/metrics/classification.hpp"
#include "sconce/metrics/confusion_matrix.hpp"
#include "sconce/metrics/curve_scores.hpp"
#include "sconce/metrics/label_scores.hpp"
#include "sconce/metrics/mean_metric.hpp"
#include "sconce/metrics/perplexity.hpp"
#include "sconce/metrics/regression.hpp"
#include "sconce/nn/multihead_attention.hpp"
#include "sconce/nn/state_dict.hpp"
#include "sconce/optim/decay_groups.hpp"
#include "sconce/report/training_curve.hpp"
#include "sconce/training/trainer.hpp"
#include "support/at_once.hpp"
#include "support/same_bytes.hpp"

using sconce::test::check_at_once;
using sconce::test::same_bytes;
using sconce::test::Use;

namespace {

namespace metrics = sconce::metrics;

template <class Metric>
Use reading_metric(const char* what, Metric metric, const torch::Tensor& preds,
                   const torch::Tensor& target) {
  metric.update(preds, target);
  const auto expected = metric.compute();
  const auto shared = std::make_shared<const Metric>(metric);
  return {what, [shared, expected] {
            return same_bytes(shared->compute(), expected) &&
                   same_bytes(shared->compute(shared->sums()), expected) &&
                   shared->higher_is_better() == shared->higher_is_better();
          }};
}

template <class Value>
Use copying(const char* what, Value value) {
  return {what, [value = std::move(value)] {
            const Value copy = value;
            return sizeof(copy) > 0;
          }};
}

}  // namespace

TEST_CASE("four threads copy the same options, data, and results concurrently") {
  const auto x = torch::ones({2, 2});
  const sconce::data::Dataset rows = {x, x};
  const sconce::data::Batches batches(rows, {.batch_size = 1});
  check_at_once({
      copying("TrainerOptions", sconce::TrainerOptions{.loss = torch::mse_loss}),
      copying("FitData", sconce::FitData{.train = batches, .test = batches}),
      copying("Dataset", rows),
      copying("StepOutput", sconce::StepOutput{.loss = x, .values = {{"kl", x}}}),
      copying("InputsAndTarget", sconce::InputsAndTarget{{x}, x}),
      copying("RunProgress", sconce::RunProgress{.extra = x}),
      copying("CsvTable", sconce::io::CsvTable{.data = x, .features = {"rooms"}}),
      copying("DecayGroups", sconce::optim::decay_groups(*torch::nn::Linear(2, 2), 0.1)),
      copying("AttentionArgs", sconce::nn::AttentionArgs{.attn_mask = x}),
      copying("LoadReport", sconce::nn::LoadReport{.missing_keys = {"weight"}}),
      copying("TrainingHistory", sconce::TrainingHistory{.scales = {1}}),
  });
}

TEST_CASE("four threads read the same metric concurrently") {
  const auto scores = torch::tensor({0.2, 0.7, 0.9, 0.4}), truth = torch::tensor({0, 1, 1, 0});
  const auto logits = torch::tensor({{2.0, 1.0, 0.0}, {0.0, 1.0, 2.0}});
  const auto classes = torch::tensor({0, 2});
  const auto labels = scores.view({2, 2}), true_labels = truth.view({2, 2});
  const metrics::MulticlassCurveOptions of_classes = {.num_classes = 3, .thresholds = 5};
  const metrics::MultilabelCurveOptions of_labels = {.num_labels = 2, .thresholds = 5};
  const metrics::MultilabelOptions two = {.num_labels = 2};
  check_at_once({
      reading_metric("Accuracy", metrics::Accuracy(), logits, classes),
      reading_metric("Precision", metrics::Precision({.num_classes = 3}), logits, classes),
      reading_metric("Recall", metrics::Recall({.num_classes = 3}), logits, classes),
      reading_metric("F1Score", metrics::F1Score({.num_classes = 3}), logits, classes),
      reading_metric("ConfusionMatrix", metrics::ConfusionMatrix({.num_classes = 3}), logits,
                     classes),
      reading_metric("BinaryAUROC", metrics::BinaryAUROC({.thresholds = 5}), scores, truth),
      reading_metric("MulticlassAUROC", metrics::MulticlassAUROC(of_classes), logits, classes),
      reading_metric("MultilabelAUROC", metrics::MultilabelAUROC(of_labels), labels, true_labels),
      reading_metric("BinaryAveragePrecision", metrics::BinaryAveragePrecision({.thresholds = 5}),
                     scores, truth),
      reading_metric("MulticlassAveragePrecision", metrics::MulticlassAveragePrecision(of_classes),
                     logits, classes),
      reading_metric("MultilabelAveragePrecision", metrics::MultilabelAveragePrecision(of_labels),
                     labels, true_labels),
      reading_metric("BinaryAccuracy", metrics::BinaryAccuracy(), scores, truth),
      reading_metric("BinaryPrecision", metrics::BinaryPrecision(), scores, truth),
      reading_metric("BinaryRecall", metrics::BinaryRecall(), scores, truth),
      reading_metric("BinaryF1Score", metrics::BinaryF1Score(), scores, truth),
      reading_metric("MultilabelAccuracy", metrics::MultilabelAccuracy(two), labels, true_labels),
      reading_metric("MultilabelPrecision", metrics::MultilabelPrecision(two), labels, true_labels),
      reading_metric("MultilabelRecall", metrics::MultilabelRecall(two), labels, true_labels),
      reading_metric("MultilabelF1Score", metrics::MultilabelF1Score(two), labels, true_labels),
      reading_metric("MeanMetric", metrics::MeanMetric(), scores, truth),
      reading_metric("Perplexity", metrics::Perplexity(), logits.unsqueeze(0),
                     classes.unsqueeze(0)),
      reading_metric("MeanSquaredError", metrics::MeanSquaredError(), scores, truth),
      reading_metric("MeanAbsoluteError", metrics::MeanAbsoluteError(), scores, truth),
      reading_metric("MeanAbsolutePercentageError", metrics::MeanAbsolutePercentageError(), scores,
                     scores),
      reading_metric("R2Score", metrics::R2Score(), scores, truth),
  });
}

TEST_CASE("four threads read the same batch concurrently") {
  const auto x = torch::ones({2, 3}), y = torch::zeros({2});
  const sconce::AnyBatch dataset = sconce::data::Dataset{x, y};
  const sconce::AnyBatch example = torch::data::Example<>(x, y);
  check_at_once({
      {"Dataset",
       [&] {
         return dataset.as<sconce::data::Dataset>().data.is_same(x) && dataset.size() == 2 &&
                dataset.index() == 0 && dataset.tensors().size() == 2 &&
                dataset.inputs_and_target().target.is_same(y) &&
                dataset.type() == typeid(sconce::data::Dataset);
       }},
      {"Example", [&] { return example.as<sconce::data::Dataset>().data.is_same(x); }},
  });
}

TEST_CASE(
    "four threads concurrently call prepare_model and prepare_batch on the same Trainer and "
    "evaluate the same Loss") {
  const sconce::Trainer trainer({.num_gpus = 0});
  const sconce::Loss loss = torch::mse_loss;
  const sconce::data::Dataset batch = {torch::ones({2, 3}), torch::zeros({2, 3})};
  check_at_once({
      {"Trainer",
       [&] {
         torch::nn::Linear model(3, 3);
         trainer.prepare_model(*model);
         return trainer.prepare_batch(batch).data.is_same(batch.data) && trainer.device().is_cpu();
       }},
      {"Loss",
       [&] {
         return loss && !loss.returns_sum() &&
                loss(batch.data, batch.target).loss.item<float>() == 1;
       }},
  });
}

TEST_CASE("four threads concurrently train different models with different trainers") {
  const auto rows = sconce::data::Dataset{torch::ones({8, 2}), torch::zeros({8}, torch::kLong)};
  check_at_once({{"Trainer", [&] {
                    torch::nn::Linear model(2, 2);
                    torch::optim::SGD optimizer(model->parameters(), 0.1);
                    sconce::Trainer trainer({.max_epochs = 2, .num_gpus = 0});
                    const sconce::data::Batches batches(rows, {.batch_size = 4});
                    const auto result = trainer.fit(model, optimizer, batches);
                    return result.epochs.size() == 2 && result.epochs[1].loss > 0;
                  }}});
}

TEST_CASE("four threads read the same process group and its wrappers concurrently") {
  const sconce::distributed::ProcessGroup group;
  const torch::nn::Linear layer(2, 2);
  const sconce::nn::DataParallel parallel(layer, {.device_ids = {torch::kCPU, torch::kCPU}});
  const sconce::nn::DistributedDataParallel distributed(layer, group);
  check_at_once({
      {"ProcessGroup",
       [&] {
         const auto copy = group;
         return copy == group && group.rank() == 0 && group.world_size() == 1 &&
                group.local_rank() == 0 && group.backend().empty();
       }},
      {"DataParallel",
       [&] {
         return parallel.device_ids().size() == 2 && parallel.output_device().is_cpu() &&
                parallel.module() == layer.ptr();
       }},
      {"DistributedDataParallel",
       [&] {
         return distributed.module() == layer.ptr() && distributed.bucket_sizes().empty() &&
                distributed.broadcast_buffers() && distributed.process_group() == group;
       }},
  });
}
