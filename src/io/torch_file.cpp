#include "sconce/io/torch_file.hpp"

#include <ATen/core/Dict.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/jit_type.h>
#include <ATen/ops/empty.h>
#include <caffe2/serialize/inline_container.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <map>

#include "io/file_kind.hpp"
#include "io/memory_budget.hpp"
#include "io/pickle_reader.hpp"
#include "io/pickle_values.hpp"
#include "io/pickle_writer.hpp"
#include "io/zip_reader.hpp"
#include "nn/name_hashes.hpp"
#include "sconce/io/atomic_file.hpp"

namespace sconce::io {

namespace {

// Throws an error if the file is not a zip archive. The error message reports the kind of file if
// it is known.
void check_begin(const InputFile& file) {
  const auto kind = file_kind(file);
  TORCH_CHECK(kind != FileKind::pickle, file.name(),
              "expected a zip archive, got a bare pickle, as written by torch.save before torch "
              "1.6 or without _use_new_zipfile_serialization: "
              "save it again with Python");
  TORCH_CHECK(kind != FileKind::unknown, file.name(),
              "expected a zip archive written by torch.save, got a file of ", file.size(),
              " bytes without the expected header");
  TORCH_CHECK(kind == FileKind::zip_archive, file.name(),
              "expected a zip archive written by torch.save, got ", name_of(kind));
}

std::string read_text(ZipReader& zip, ZipRecord& record) {
  std::string text(record.unpacked, '\0');
  zip.read(record, text.data());
  return text;
}

// Returns the folder that contains all records, including the trailing slash.
std::string folder_of(ZipReader& zip, const std::string& error_prefix) {
  const std::string first = zip.records().empty() ? "" : zip.records().front().name;
  const std::string folder = first.substr(0, first.find('/') + 1);
  const std::string code = folder + "code/";
  bool is_script = zip.find(folder + "constants.pkl") != nullptr;
  for (const auto& record : zip.records()) {
    is_script = is_script || record.name.starts_with(code);
  }
  TORCH_CHECK(!is_script, error_prefix,
              "expected an archive written by Python's torch.save, got a TorchScript archive, "
              "written by torch.jit.save or C++'s torch::save");
  TORCH_CHECK(!folder.empty() && zip.find(folder + "data.pkl") != nullptr, error_prefix,
              "expected an archive written by torch.save with a record '", folder,
              "data.pkl', got a zip archive that begins with '", first, "'");
  return folder;
}

// Returns the contents of a small record, or std::nullopt if the archive does not contain the
// record.
std::optional<std::string> short_text(ZipReader& zip, const std::string& name) {
  auto* record = zip.find(name);
  if (record == nullptr) return std::nullopt;
  return record->unpacked <= 16 ? read_text(zip, *record) : "something longer";
}

// Python rejects files without a version or with an unknown version.
void check_version(ZipReader& zip, const std::string& folder, const std::string& error_prefix) {
  namespace versions = caffe2::serialize;
  const std::string name = folder + "version";
  auto text = short_text(zip, folder + ".data/version");
  if (!text) text = short_text(zip, name);
  TORCH_CHECK(text, error_prefix, "expected a record '", name, "', found none");
  uint64_t version = 0;
  std::from_chars(text->data(), text->data() + text->size(), version);
  TORCH_CHECK(version >= versions::kMinSupportedFileFormatVersion &&
                  version <= versions::kMaxSupportedFileFormatVersion,
              error_prefix, "'", name, "': expected a version from ",
              versions::kMinSupportedFileFormatVersion, " to ",
              versions::kMaxSupportedFileFormatVersion, ", got '", *text, "'");
}

// Returns whether the file was written on a big-endian machine. Archives written by torch 1.x do
// not store the byte order and come from little-endian machines.
bool is_big_endian(ZipReader& zip, const std::string& folder, const std::string& error_prefix) {
  const std::string name = folder + "byteorder";
  const auto order = short_text(zip, name).value_or("little");
  TORCH_CHECK(order == "little" || order == "big", error_prefix, "'", name,
              "': expected 'little' or 'big', got '", order, "'");
  return order == "big";
}

// Reverses the byte order of each number.
void swap_bytes(const at::Tensor& bytes, c10::ScalarType type) {
  const auto size = c10::elementSize(type) / (c10::isComplexType(type) ? 2 : 1);
  auto* begin = static_cast<char*>(bytes.mutable_data_ptr());
  for (size_t at = 0; at + size <= bytes.nbytes(); at += size) {
    std::reverse(begin + at, begin + at + size);
  }
}

// Reads the bytes of a storage. If the bytes must be swapped, `swapped` is the element type.
c10::Storage read_storage(ZipReader& zip, const std::string& name, torch::Device device,
                          std::optional<c10::ScalarType> swapped, const std::string& error_prefix) {
  auto* record = zip.find(name);
  TORCH_CHECK(record != nullptr, error_prefix, "expected a storage record '", name,
              "', found none");
  const auto bytes = at::empty({static_cast<int64_t>(record->unpacked)}, c10::kByte);
  zip.read(*record, bytes.mutable_data_ptr());
  if (swapped) swap_bytes(bytes, *swapped);
  return bytes.to(device).storage();
}

// Writes the records of an archive, starting with the pickle.
void write_archive(const Pickled& pickled, caffe2::serialize::PyTorchStreamWriter& archive,
                   const std::function<void()>& check) {
  const auto write = [&](const std::string& name, const void* data, size_t size) {
    archive.writeRecord(name, data, size);
    check();
  };
  const auto write_text = [&](const std::string& name, const std::string& text) {
    write(name, text.data(), text.size());
  };
  write_text("data.pkl", pickled.text);
  write_text(".format_version", "1");
  write_text(".storage_alignment", "64");
  write_text("byteorder", "little");
  for (size_t i = 0; i < pickled.storages.size(); ++i) {
    const auto& storage = pickled.storages[i];
    const auto size = static_cast<int64_t>(storage.nbytes());
    const auto options = at::TensorOptions(c10::kByte).device(storage.device());
    const auto bytes = at::empty({0}, options).set_(storage, 0, {size}, {1}).cpu();
    write("data/" + std::to_string(i), bytes.const_data_ptr(), bytes.nbytes());
  }
  archive.writeEndOfFile();
}

// Finalizes an archive that is no longer needed. Otherwise, the archive's destructor would finalize
// the archive, and running out of memory in the destructor would terminate the process.
void discard_archive(caffe2::serialize::PyTorchStreamWriter& archive) {
  try {
    archive.writeEndOfFile();
  } catch (...) {  // report the first error instead
  }
}

c10::IValue read_value(const InputFile& file, const TorchFileOptions& options) {
  const at::NoGradGuard no_grad;
  check_begin(file);
  ZipReader zip(file);
  TORCH_CHECK(zip.has_checksums() || !options.require_checksums, file.name(),
              "expected an archive with checksums, got one without checksums");
  const std::string folder = folder_of(zip, file.name());
  check_version(zip, folder, file.name());
  MemoryBudget budget(file.size(), options.max_expansion);
  budget.take(zip.unpacked_size(), file.name());
  const bool swaps = is_big_endian(zip, folder, file.name());
  std::map<std::string, c10::Storage> storages;
  const auto load = [&](const std::string& key, std::optional<c10::ScalarType> type) {
    // Python does not swap the bytes of untyped storages, so Python reads incorrect values from
    // files written on big-endian machines.
    TORCH_CHECK(type || !swaps, file.name(), "storage '", key,
                "': expected a typed storage class in a file from a big-endian machine, got "
                "UntypedStorage");
    const auto [place, is_new] = storages.try_emplace(key);
    if (is_new) {
      place->second = read_storage(zip, folder + "data/" + key, options.device,
                                   swaps ? type : std::nullopt, file.name());
    }
    return place->second;
  };
  auto& pickle = *zip.find(folder + "data.pkl");
  const auto value =
      read_pickle(read_text(zip, pickle), load, budget, file.name() + "'" + pickle.name + "': ");
  zip.check_others();
  return value;
}

StateDict state_dict_of(const c10::IValue& value, const std::string& error_prefix) {
  TORCH_CHECK(value.isGenericDict(), error_prefix, "expected a dict of tensors, got ",
              kind_of(value));
  const auto items = value.toGenericDict();
  std::vector<std::string_view> names;
  for (const auto& item : items) {
    const c10::IValue &key = item.key(), &tensor = item.value();
    TORCH_CHECK(key.isString(), error_prefix, "expected keys of type str, got ", key);
    TORCH_CHECK(tensor.isTensor(), error_prefix, "['", key.toStringRef(),
                "']: expected a tensor, got ", kind_of(tensor));
    names.push_back(key.toStringView());
  }
  nn::check_name_hashes(names, error_prefix);
  StateDict state;
  for (const auto& item : items) state.insert(item.key().toStringRef(), item.value().toTensor());
  return state;
}

}  // namespace

c10::IValue load_torch(const std::filesystem::path& path, TorchFileOptions options) {
  return read_value(InputFile(path, "sconce::io::load_torch"), options);
}

StateDict load_torch_state_dict(const std::filesystem::path& path, TorchFileOptions options) {
  const InputFile file(path, "sconce::io::load_torch_state_dict");
  return state_dict_of(read_value(file, options), file.name());
}

bool is_torch_file(const std::filesystem::path& path) {
  const auto kind = file_kind(InputFile(path, "sconce::io::is_torch_file"));
  return kind == FileKind::zip_archive || kind == FileKind::pickle;
}

void save_torch(const std::filesystem::path& path, const c10::IValue& value) {
  const at::NoGradGuard no_grad;
  constexpr auto name = "sconce::io::save_torch";
  const Pickled pickled = write_pickle(value, name + std::string(": ") + path.string() + ": ");
  AtomicFile file(path, name);
  std::exception_ptr failure;
  {
    // The archive's destructor also writes, so this function must not throw.
    caffe2::serialize::PyTorchStreamWriter archive([&](const void* data, size_t size) {
      if (failure) return size;
      try {
        file.write(data, size);
      } catch (...) {
        failure = std::current_exception();
      }
      return size;
    });
    try {
      write_archive(pickled, archive, [&] {
        if (failure) std::rethrow_exception(failure);
      });
    } catch (...) {
      if (!failure) failure = std::current_exception();
      discard_archive(archive);
    }
  }
  if (failure) std::rethrow_exception(failure);
  file.finish();
}

void save_torch(const std::filesystem::path& path, const StateDict& state) {
  save_torch(path, as_ivalue(state));
}

StateDict as_state_dict(const c10::IValue& value) {
  return state_dict_of(value, "sconce::io::as_state_dict: ");
}

c10::IValue as_ivalue(const StateDict& state) {
  c10::impl::GenericDict dict(c10::AnyType::get(), c10::AnyType::get());
  for (const auto& item : state) dict.insert(item.key(), item.value());
  return dict;
}

}  // namespace sconce::io
