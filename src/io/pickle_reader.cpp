#include "io/pickle_reader.hpp"

#include <bit>
#include <cstring>

#include "io/pickle_calls.hpp"
#include "io/pickle_result.hpp"
#include "io/pickle_values.hpp"
#include "io/utf8.hpp"

namespace sconce::io {

static_assert(std::endian::native == std::endian::little, "the format's numbers are little-endian");

namespace {

using LoadStorage = std::function<c10::Storage(const std::string& key)>;

// The machine that Python's Lib/pickle.py describes: a stack of values, marks in it, and a memo.
class PickleReader {
 public:
  PickleReader(std::string_view pickle, const LoadStorage& load, const std::string& who)
      : pickle_(pickle), load_(load), who_(who) {}

  c10::IValue read() {
    while (step()) {
    }
    const Value result = pop();
    check(stack_.empty() && marks_.empty() && next_ == pickle_.size(),
          "expected one value and the end of the pickle, got more");
    return to_ivalue(result, values_, who_);
  }

 private:
  Place place() const { return {who_, at_}; }

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
    check(end != std::string_view::npos, "expected the end of a line");
    const auto line = take(end + 1 - next_);
    return line.substr(0, line.size() - 1);
  }

  void push(Kind kind, int64_t number = 0) { stack_.push_back({kind, number}); }

  Value& top() {
    check(stack_.size() > (marks_.empty() ? 0 : marks_.back()), "expected a value on the stack");
    return stack_.back();
  }

  Value pop() {
    const Value value = top();
    stack_.pop_back();
    return value;
  }

  std::vector<Value> pop_to_mark() {
    check(!marks_.empty(), "expected a mark on the stack");
    const auto begin = stack_.begin() + static_cast<ptrdiff_t>(marks_.back());
    std::vector<Value> items(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return items;
  }

  void push_container(Kind kind, std::vector<Value> items = {}) {
    push(kind, static_cast<int64_t>(values_.containers.size()));
    values_.containers.push_back({.kind = kind, .made_at = at_, .items = std::move(items)});
  }

  void push_tuple(size_t size) {
    std::vector<Value> items(size);
    for (size_t i = size; i > 0; --i) items[i - 1] = pop();
    push_container(Kind::tuple, std::move(items));
  }

  void push_text(std::string_view text) {
    check(is_utf8(text), "expected a str in UTF-8");
    push(Kind::text, static_cast<int64_t>(values_.texts.size()));
    values_.texts.emplace_back(std::string(text));
  }

  void push_long() {
    const size_t size = take<uint8_t>();
    check(size <= 8, "expected an int of 64 bits, got one of ", size, " bytes");
    const auto bytes = take(size);
    const bool negative = size > 0 && (bytes.back() & 0x80) != 0;
    int64_t number = negative ? -1 : 0;
    std::memcpy(&number, bytes.data(), size);
    push(Kind::integer, number);
  }

  void push_real() {  // the one number that is big-endian
    uint64_t bits = 0;
    for (const char byte : take(8)) bits = bits << 8 | static_cast<unsigned char>(byte);
    push(Kind::real, static_cast<int64_t>(bits));
  }

  void push_global() {
    const auto module = take_line();
    const auto name = take_line();
    stack_.push_back(find_global(module, name, place()));
  }

  // Adds to the container under `items`.
  void add(Kind kind, const std::vector<Value>& items) {
    const Value& to = top();
    check(to.kind == kind, "expected ", kind, " to add to, got ", to.kind);
    check(kind == Kind::list || items.size() % 2 == 0, "expected a value for each key of a dict");
    auto& all = values_.containers[to.index()].items;
    all.insert(all.end(), items.begin(), items.end());
  }

  void add_pair() {
    const Value value = pop(), key = pop();
    add(Kind::dict, {key, value});
  }

  void get(size_t index) {
    check(index < memo_.size() && is_memoized_[index], "expected a value kept under ", index);
    stack_.push_back(memo_[index]);
  }

  void put(size_t index) {
    check(index < pickle_.size(), "expected to keep a value under a number below ", pickle_.size(),
          ", got ", index);
    if (index >= memo_.size()) {
      memo_.resize(index + 1);
      is_memoized_.resize(index + 1);
    }
    memo_[index] = top();
    is_memoized_[index] = true;
  }

  void call() {
    const Value arguments = pop(), global = pop();
    stack_.push_back(call_global(global, arguments, values_, place()));
  }

  // Attributes, such as the _metadata of a state dict, have no place in LibTorch's dicts.
  void drop_attributes() {
    const Value attributes = pop();
    const Value& of = top();
    check(attributes.kind == Kind::dict && of.kind == Kind::dict &&
              values_.containers[of.index()].is_ordered_dict,
          "expected attributes of an OrderedDict, got ", attributes.kind, " for ", of.kind);
  }

  // ("storage", class, key, location, number of elements)
  void load_storage() {
    const Value id = pop();
    constexpr Kind kinds[] = {Kind::text, Kind::global, Kind::text, Kind::text, Kind::integer};
    check(id.kind == Kind::tuple, "expected the id of a storage, got ", id.kind);
    const auto& items = values_.containers[id.index()].items;
    bool fits = items.size() == std::size(kinds);
    for (size_t i = 0; fits && i < std::size(kinds); ++i) fits = items[i].kind == kinds[i];
    check(fits && text(items[0]) == "storage", "expected the id of a storage, got another tuple");
    const auto& key = text(items[2]);
    check(key.size() <= 0xFFFF, "expected a key of a storage, got one of ", key.size(), " bytes");
    const auto type = storage_type(items[1], place());
    const auto storage = load_(key);
    const auto elements = static_cast<int64_t>(storage.nbytes() / c10::elementSize(type));
    check(items[4].number == elements, "storage '", key, "': expected ", items[4].number, " of ",
          type, ", found ", elements);
    push(Kind::storage, static_cast<int64_t>(values_.storages.size()));
    values_.storages.push_back({storage, type});
  }

  const std::string& text(const Value& value) const {
    return values_.texts[value.index()].toStringRef();
  }

  bool step();
  void step_other(unsigned char operation);

  std::string_view pickle_;
  const LoadStorage& load_;
  const std::string& who_;
  size_t next_ = 0;  // byte to read
  size_t at_ = 0;    // byte of the operation
  Values values_ = {};
  std::vector<Value> stack_ = {};
  std::vector<size_t> marks_ = {};
  std::vector<Value> memo_ = {};
  std::vector<bool> is_memoized_ = {};
};

// Does the next operation; false at the last. The letters are the format's.
bool PickleReader::step() {
  at_ = next_;
  const auto operation = take<unsigned char>();
  switch (operation) {
    case '.':
      return false;
    case '(':
      marks_.push_back(stack_.size());
      break;
    case 'N':
      push(Kind::none);
      break;
    case 0x88:
      push(Kind::boolean, 1);
      break;
    case 0x89:
      push(Kind::boolean, 0);
      break;
    case 'K':
      push(Kind::integer, take<uint8_t>());
      break;
    case 'M':
      push(Kind::integer, take<uint16_t>());
      break;
    case 'J':
      push(Kind::integer, take<int32_t>());
      break;
    case 0x8a:
      push_long();
      break;
    case 'G':
      push_real();
      break;
    case 'U':
      push_text(take(take<uint8_t>()));
      break;
    case 'X':
      push_text(take(take<uint32_t>()));
      break;
    case ']':
      push_container(Kind::list);
      break;
    case '}':
      push_container(Kind::dict);
      break;
    case ')':
      push_container(Kind::tuple);
      break;
    case 0x85:
      push_tuple(1);
      break;
    case 0x86:
      push_tuple(2);
      break;
    case 0x87:
      push_tuple(3);
      break;
    case 't':
      push_container(Kind::tuple, pop_to_mark());
      break;
    case 'a':
      add(Kind::list, {pop()});
      break;
    case 'e':
      add(Kind::list, pop_to_mark());
      break;
    case 's':
      add_pair();
      break;
    case 'u':
      add(Kind::dict, pop_to_mark());
      break;
    default:
      step_other(operation);
  }
  return true;
}

void PickleReader::step_other(unsigned char operation) {
  switch (operation) {
    case 0x80:
      take<uint8_t>();
      break;  // the protocol: what it allows, the operations tell
    case 'h':
      get(take<uint8_t>());
      break;
    case 'j':
      get(take<uint32_t>());
      break;
    case 'q':
      put(take<uint8_t>());
      break;
    case 'r':
      put(take<uint32_t>());
      break;
    case 'c':
      push_global();
      break;
    case 'R':
      call();
      break;
    case 'b':
      drop_attributes();
      break;
    case 'Q':
      load_storage();
      break;
    default:
      check(false, "expected an operation that torch.save writes of state dicts, got number ",
            int{operation});
  }
}

}  // namespace

c10::IValue read_pickle(std::string_view pickle, const LoadStorage& load, const std::string& who) {
  return PickleReader(pickle, load, who).read();
}

}  // namespace sconce::io
