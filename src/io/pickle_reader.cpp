#include "io/pickle_reader.hpp"

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>

#include <array>
#include <bit>
#include <cstring>
#include <iterator>
#include <map>

#include "io/pickle_calls.hpp"
#include "io/pickle_values.hpp"
#include "io/utf8.hpp"

namespace sconce::io {

static_assert(std::endian::native == std::endian::little, "the format's numbers are little-endian");

namespace {

// Upper bounds on the bytes per string, excluding the characters, and on the bytes per memo entry.
constexpr size_t text_bytes = 96, memo_bytes = 80;

// The virtual machine described in Python's Lib/pickle.py. The machine consists of a memo and a
// stack. The stack contains values and may also contain marks.
class PickleReader {
 public:
  PickleReader(std::string_view pickle, const LoadStorage& load, MemoryBudget& budget,
               const std::string& error_prefix)
      : pickle_(pickle),
        load_(load),
        error_prefix_(error_prefix),
        containers_(budget, error_prefix) {}

  c10::IValue read() {
    while (step()) {
    }
    const auto result = pop();
    check(stack_.empty() && marks_.empty() && next_ == pickle_.size(),
          "expected a pickle with a single value, got more data");
    containers_.check(result);
    return result;
  }

 private:
  Place place() const { return {error_prefix_, at_}; }

  template <class... Parts>
  void check(bool holds, const Parts&... parts) const {
    TORCH_CHECK(holds, place(), parts...);
  }

  std::string_view take(size_t size) {
    const size_t left = pickle_.size() - next_;
    check(size <= left, "expected ", size, " more bytes, found ", left);
    next_ += size;
    return pickle_.substr(next_ - size, size);
  }

  template <class T>
  T take() {
    T number;
    std::memcpy(&number, take(sizeof(T)).data(), sizeof(T));
    return number;
  }

  std::string_view take_line() {
    const size_t end = pickle_.find('\n', next_);
    check(end != std::string_view::npos, "expected a newline, found none");
    const auto line = take(end + 1 - next_);
    return line.substr(0, line.size() - 1);
  }

  void push(c10::IValue value) {
    containers_.make_room(stack_);
    stack_.push_back(std::move(value));
  }

  void push_mark() {
    containers_.make_room(marks_);
    marks_.push_back(stack_.size());
  }

  size_t last_mark() const { return marks_.empty() ? 0 : marks_.back(); }

  c10::IValue& top() {
    check(stack_.size() > last_mark(), "expected a value on the stack, found none");
    return stack_.back();
  }

  c10::IValue pop() {
    auto value = std::move(top());
    stack_.pop_back();
    return value;
  }

  std::vector<c10::IValue> pop_to_mark() {
    check(!marks_.empty(), "expected a mark on the stack, found none");
    const auto begin = stack_.begin() + static_cast<ptrdiff_t>(marks_.back());
    std::vector<c10::IValue> items(std::make_move_iterator(begin),
                                   std::make_move_iterator(stack_.end()));
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return items;
  }

  // Calls the function with the value below the last mark and the values above the last mark, and
  // then pops the values above the mark.
  template <class F>
  void with_items(const F& use) {
    check(!marks_.empty(), "expected a mark on the stack, found none");
    const size_t begin = marks_.back();
    marks_.pop_back();
    check(begin > last_mark(), "expected a value on the stack, found none");
    use(stack_[begin - 1], c10::ArrayRef<c10::IValue>(stack_).slice(begin));
    stack_.resize(begin);
  }

  void push_tuple(std::vector<c10::IValue> items) {
    push(containers_.make_tuple(std::move(items), at_));
  }

  void push_tuple_of(size_t size) {
    std::vector<c10::IValue> items(size);
    for (size_t i = size; i > 0; --i) items[i - 1] = pop();
    push_tuple(std::move(items));
  }

  void push_text(std::string_view text) {
    check(is_utf8(text), "expected a str of valid UTF-8");
    containers_.take(text_bytes + text.size());
    push(std::string(text));
  }

  void push_long() {
    const size_t size = take<uint8_t>();
    check(size <= 8, "expected an int of at most 64 bits, got an int of ", size, " bytes");
    const auto bytes = take(size);
    const bool negative = size > 0 && (bytes.back() & 0x80) != 0;
    int64_t number = negative ? -1 : 0;
    std::memcpy(&number, bytes.data(), size);
    push(number);
  }

  void push_real() {  // the only big-endian number in the format
    uint64_t bits = 0;
    for (const char byte : take(8)) bits = bits << 8 | static_cast<unsigned char>(byte);
    push(std::bit_cast<double>(bits));
  }

  void push_global() {
    const auto module = take_line();
    const auto name = take_line();
    push(find_global(module, name, containers_, place()));
  }

  void append(const c10::IValue& list, c10::ArrayRef<c10::IValue> items) {
    check(list.isList(), "expected a list to append to, got ", kind_of(list));
    containers_.append(list, items);
  }

  void append_one() {
    const auto item = pop();
    append(top(), item);
  }

  void insert(const c10::IValue& dict, c10::ArrayRef<c10::IValue> items) {
    check(dict.isGenericDict(), "expected a dict to insert into, got ", kind_of(dict));
    check(items.size() % 2 == 0, "expected a value for each dict key, got a key without a value");
    containers_.insert(dict, items, place());
  }

  void insert_pair() {
    const auto value = pop(), key = pop();
    insert(top(), {key, value});
  }

  void get(size_t index) {
    const auto kept = memo_.find(index);
    check(kept != memo_.end(), "expected a value at memo index ", index);
    push(kept->second);
  }

  void put(size_t index) {
    check(index < pickle_.size(), "expected a memo index below ", pickle_.size(), ", got ", index);
    const auto& value = top();
    if (const auto kept = memo_.find(index); kept != memo_.end()) {
      kept->second = value;
    } else {
      containers_.take(memo_bytes);
      memo_.emplace(index, value);
    }
  }

  void call() {
    const auto arguments = pop(), global = pop();
    push(call_global(global, arguments, containers_, place()));
  }

  // Skips attributes, such as a state dict's _metadata, because LibTorch dicts cannot store them.
  void drop_attributes() {
    const auto attributes = pop();
    check(attributes.isGenericDict() && containers_.is_ordered_dict(top()),
          "expected an OrderedDict and a dict with its attributes, got ", kind_of(top()), " and ",
          kind_of(attributes));
  }

  // ("storage", class, key, location, number of elements)
  void load_storage() {
    const auto id = pop();
    check(id.isTuple(), "expected a storage ID, got ", kind_of(id));
    const auto items = id.toTupleRef().elements().asArrayRef();
    check(items.size() == 5 && items[0].isString() && items[1].isCapsule() && items[2].isString() &&
              items[3].isString() && items[4].isInt() && items[0].toStringView() == "storage",
          "expected a storage ID, got a tuple with different contents");
    const auto& key = items[2].toStringRef();
    check(key.size() <= 0xFFFF, "expected a storage key of at most 65535 bytes, got ", key.size(),
          " bytes");
    const auto typed = storage_type(items[1], place());
    const auto type = typed.value_or(c10::kByte);
    const auto storage = load_(key, typed);
    const auto elements = static_cast<int64_t>(storage.nbytes() / c10::elementSize(type));
    check(items[4].toInt() == elements, "storage '", key, "': expected ", items[4].toInt(), " of ",
          type, ", found ", elements);
    containers_.take(named_bytes + key.size());  // looking up the key also takes time
    push(capsule(Global::storage, type, storage));
  }

  bool step();

  std::string_view pickle_;
  const LoadStorage& load_;
  const std::string& error_prefix_;
  size_t next_ = 0;        // next byte to read
  size_t at_ = 0;          // first byte of the current operation
  Containers containers_;  // must outlive the members below
  std::vector<c10::IValue> stack_ = {};
  std::vector<size_t> marks_ = {};
  std::map<size_t, c10::IValue> memo_ = {};  // not hashed, because the file chooses the keys
};

// Runs the next operation. Returns false at the end of the pickle. The characters are the format's
// opcodes.
bool PickleReader::step() {
  using Reader = PickleReader;
  static const auto operations = [] {
    std::array<void (*)(Reader&), 256> all = {};
    all[0x80] = [](Reader& r) { r.take<uint8_t>(); };  // the protocol number is not needed
    all['('] = [](Reader& r) { r.push_mark(); };
    all['N'] = [](Reader& r) { r.push({}); };
    all[0x88] = [](Reader& r) { r.push(true); };
    all[0x89] = [](Reader& r) { r.push(false); };
    all['K'] = [](Reader& r) { r.push(int64_t{r.take<uint8_t>()}); };
    all['M'] = [](Reader& r) { r.push(int64_t{r.take<uint16_t>()}); };
    all['J'] = [](Reader& r) { r.push(int64_t{r.take<int32_t>()}); };
    all[0x8a] = [](Reader& r) { r.push_long(); };
    all['G'] = [](Reader& r) { r.push_real(); };
    all['U'] = [](Reader& r) { r.push_text(r.take(r.take<uint8_t>())); };
    all['X'] = [](Reader& r) { r.push_text(r.take(r.take<uint32_t>())); };
    all[']'] = [](Reader& r) { r.push(r.containers_.make_list(r.at_)); };
    all['}'] = [](Reader& r) { r.push(r.containers_.make_dict(r.at_)); };
    all[')'] = [](Reader& r) { r.push_tuple({}); };
    all[0x85] = [](Reader& r) { r.push_tuple_of(1); };
    all[0x86] = [](Reader& r) { r.push_tuple_of(2); };
    all[0x87] = [](Reader& r) { r.push_tuple_of(3); };
    all['t'] = [](Reader& r) { r.push_tuple(r.pop_to_mark()); };
    all['a'] = [](Reader& r) { r.append_one(); };
    all['e'] = [](Reader& r) {
      r.with_items([&](const auto& list, auto items) { r.append(list, items); });
    };
    all['s'] = [](Reader& r) { r.insert_pair(); };
    all['u'] = [](Reader& r) {
      r.with_items([&](const auto& dict, auto items) { r.insert(dict, items); });
    };
    all['h'] = [](Reader& r) { r.get(r.take<uint8_t>()); };
    all['j'] = [](Reader& r) { r.get(r.take<uint32_t>()); };
    all['q'] = [](Reader& r) { r.put(r.take<uint8_t>()); };
    all['r'] = [](Reader& r) { r.put(r.take<uint32_t>()); };
    all['c'] = [](Reader& r) { r.push_global(); };
    all['R'] = [](Reader& r) { r.call(); };
    all['b'] = [](Reader& r) { r.drop_attributes(); };
    all['Q'] = [](Reader& r) { r.load_storage(); };
    return all;
  }();
  at_ = next_;
  const auto operation = take<unsigned char>();
  if (operation == '.') return false;
  check(operations[operation] != nullptr,
        "expected an operation that torch.save writes for state dicts, got number ",
        int{operation});
  operations[operation](*this);
  return true;
}

}  // namespace

c10::IValue read_pickle(std::string_view pickle, const LoadStorage& load, MemoryBudget& budget,
                        const std::string& error_prefix) {
  return PickleReader(pickle, load, budget, error_prefix).read();
}

}  // namespace sconce::io
