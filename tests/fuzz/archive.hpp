#pragma once

#include <caffe2/serialize/inline_container.h>

#include <string>
#include <string_view>
#include <vector>

namespace sconce::test {

/// Returns an archive in the torch.save format. The checksums are valid even if the pickle is not.
inline std::string archive_of(std::string_view pickle, const std::vector<std::string>& storages) {
  std::string bytes;
  {
    caffe2::serialize::PyTorchStreamWriter archive([&](const void* data, size_t size) {
      bytes.append(static_cast<const char*>(data), size);
      return size;
    });
    const auto write = [&](const std::string& name, std::string_view record) {
      archive.writeRecord(name, record.data(), record.size());
    };
    write("data.pkl", pickle);
    write("byteorder", "little");
    for (size_t i = 0; i < storages.size(); ++i) write("data/" + std::to_string(i), storages[i]);
    archive.writeEndOfFile();  // also writes the version
  }
  return bytes;
}

/// Returns an archive like the one that torch.save writes after set_crc32_options(False).
inline std::string without_checksums(const std::string& file) {
  std::string bytes;
  caffe2::serialize::PyTorchStreamReader from(file);
  caffe2::serialize::PyTorchStreamWriter to(
      [&](const void* data, size_t size) {
        bytes.append(static_cast<const char*>(data), size);
        return size;
      },
      /*compute_crc32=*/false);
  for (const auto& name : from.getAllRecords()) {
    if (name.starts_with(".data/")) continue;  // added by the writer
    const auto [data, size] = from.getRecord(name);
    to.writeRecord(name, data.get(), size);
  }
  to.writeEndOfFile();
  return bytes;
}

}  // namespace sconce::test
