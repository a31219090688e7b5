#include "transport/lane/shm/shm_ring.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "transport/base/random.h"
#include "transport/lane/shm/shm_memory.h"

namespace paceline {
namespace {

constexpr uint32_t kMostHeader = 256;

std::string Contents(uint64_t number, size_t bytes) {
  std::string text(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(number * 31 + i * 7);
  return text;
}

std::span<const uint8_t> Bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::string TextOf(const ShmRingReader::Packet& packet) {
  return std::string(reinterpret_cast<const char*>(packet.header), packet.header_bytes) +
         std::string(reinterpret_cast<const char*>(packet.payload), packet.payload_bytes);
}

class ShmRingTest : public ::testing::Test {
 protected:
  static ShmMemory Make() {
    FileDescriptor descriptor;
    auto memory = ShmMemory::Create(ShmMemory::kLeastRing, &descriptor);
    EXPECT_TRUE(memory.ok()) << memory.status();
    return *std::move(memory);
  }
  ShmMemory memory_ = Make();
  ShmRingControl& control_ = *memory_.ring().control;
  ShmRingWriter writer_{memory_.ring()};
  ShmRingReader reader_{memory_.ring(), kMostHeader};
  ShmRingReader::Packet packet_;
};

TEST_F(ShmRingTest, PacketsOfAllSizesComeInOrderAcrossTheEnd) {
  Random random(7);
  uint64_t written = 0, read = 0, bytes = 0;
  while (bytes < 20 * ShmMemory::kLeastRing) {
    const std::string header = Contents(written, random.Below(kMostHeader + 1));
    const std::string payload = Contents(written + 1, random.Below(9000));
    if (writer_.Write(Bytes(header), Bytes(payload))) {
      ++written;
      bytes += header.size() + payload.size();
      continue;
    }
    random = Random(7 + read);  // the sizes are not needed again: contents tell
    while (reader_.Read(&packet_)) {
      const std::string text = TextOf(packet_);
      EXPECT_EQ(text, Contents(read, packet_.header_bytes) + Contents(read + 1, packet_.payload_bytes)) << read;
      ++read;
    }
    reader_.Release();
  }
  while (reader_.Read(&packet_)) ++read;
  EXPECT_EQ(read, written);
  EXPECT_FALSE(reader_.broken() || writer_.broken());
}

// So many that they are copied in all ways that there are (shm_copy_choice.h).
TEST_F(ShmRingTest, LargePayloadsComeWholeHoweverTheyAreCopied) {
  constexpr uint64_t kPackets = 100 * ShmCopyChoice::kTimedEvery;
  for (uint64_t i = 0; i < kPackets; ++i) {
    const std::string header = Contents(i, 80), payload = Contents(i + 1, ShmCopyChoice::kLeastBytes + i % 3001);
    ASSERT_TRUE(writer_.Write(Bytes(header), Bytes(payload)));
    ASSERT_TRUE(reader_.Read(&packet_));
    ASSERT_EQ(TextOf(packet_), header + payload) << i;
    reader_.Release();
  }
}

TEST_F(ShmRingTest, AFullRingTakesNothingUntilSomethingIsReleased) {
  const std::string header = Contents(0, 100), payload = Contents(1, 4000);
  const uint64_t one = ShmPacketBytes(100, 4000);
  uint64_t fit = 0;
  while (writer_.Write(Bytes(header), Bytes(payload))) ++fit;
  EXPECT_EQ(fit, ShmMemory::kLeastRing / one);
  EXPECT_LT(writer_.Room(one), one);
  ASSERT_TRUE(reader_.Read(&packet_));
  EXPECT_EQ(reader_.held_bytes(), one);
  EXPECT_FALSE(writer_.Write(Bytes(header), Bytes(payload))) << "read, but still looked at";
  reader_.Release();
  EXPECT_EQ(reader_.held_bytes(), 0u);
  EXPECT_TRUE(writer_.Write(Bytes(header), Bytes(payload)));
}

TEST_F(ShmRingTest, TheReaderIsWokenOnceAndOnlyWhenItSleeps) {
  const std::string text = Contents(0, 64);
  ASSERT_TRUE(writer_.Write(Bytes(text), {}));
  EXPECT_FALSE(writer_.ReaderSleeps()) << "it is awake";
  EXPECT_FALSE(reader_.AskForPackets()) << "something is there";
  EXPECT_FALSE(writer_.ReaderSleeps()) << "so it does not sleep";
  ASSERT_TRUE(reader_.Read(&packet_));
  EXPECT_TRUE(reader_.AskForPackets());
  ASSERT_TRUE(writer_.Write(Bytes(text), {}));
  EXPECT_TRUE(writer_.ReaderSleeps());
  EXPECT_FALSE(writer_.ReaderSleeps()) << "it has been woken";
}

TEST_F(ShmRingTest, TheWriterIsWokenOnceAndOnlyWhenItSleeps) {
  const std::string text = Contents(0, 100), payload = Contents(1, 4000);
  const uint64_t one = ShmPacketBytes(100, 4000);
  while (writer_.Write(Bytes(text), Bytes(payload))) continue;
  ASSERT_TRUE(reader_.Read(&packet_));
  EXPECT_FALSE(reader_.Release()) << "it is awake";
  EXPECT_FALSE(writer_.AskForRoom(one)) << "there is room";
  ASSERT_TRUE(writer_.Write(Bytes(text), Bytes(payload)));
  EXPECT_TRUE(writer_.AskForRoom(one));
  ASSERT_TRUE(reader_.Read(&packet_));
  EXPECT_TRUE(reader_.Release());
  ASSERT_TRUE(reader_.Read(&packet_));
  EXPECT_FALSE(reader_.Release()) << "it has been woken";
}

// Two threads on one mapping, so that the thread sanitizer sees both sides of every access.
TEST_F(ShmRingTest, AWriterAndAReaderAtOnce) {
  constexpr uint64_t kPackets = 60'000;
  // Some are so large that they may be copied past the caches.
  const auto payload_bytes = [](uint64_t i) { return i % 16 == 0 ? 2048 + i % 3000 : i * 37 % 1500; };
  std::thread writing([this, payload_bytes] {
    for (uint64_t i = 0; i < kPackets; ++i) {
      const std::string header = Contents(i, 8 + i % 100), payload = Contents(i + 1, payload_bytes(i));
      while (!writer_.Write(Bytes(header), Bytes(payload))) std::this_thread::yield();
    }
  });
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < kPackets;) {
    if (!reader_.Read(&packet_)) {
      reader_.Release();
      std::this_thread::yield();
      continue;
    }
    wrong += TextOf(packet_) != Contents(i, 8 + i % 100) + Contents(i + 1, payload_bytes(i));
    if (++i % 5 == 0) reader_.Release();
  }
  writing.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_FALSE(reader_.broken() || writer_.broken());
}

// Both sleep (here: wait for a flag of the other's) whenever there is nothing to do: nobody may be forgotten.
TEST_F(ShmRingTest, NobodySleepsForEver) {
  constexpr uint64_t kPackets = 20'000;
  std::atomic<uint32_t> rings_to_reader{0}, rings_to_writer{0};
  const std::string payload = Contents(1, 6000);
  const uint64_t one = ShmPacketBytes(0, 6000);
  std::thread writing([&] {
    uint32_t heard = 0;
    for (uint64_t i = 0; i < kPackets; ++i) {
      while (!writer_.Write({}, Bytes(payload))) {
        if (!writer_.AskForRoom(one)) continue;
        while (rings_to_writer.load() == heard) std::this_thread::yield();
        heard = rings_to_writer.load();
      }
      if (writer_.ReaderSleeps()) ++rings_to_reader;
    }
  });
  uint32_t heard = 0;
  for (uint64_t i = 0; i < kPackets;) {
    if (reader_.Read(&packet_)) {
      ++i;
      continue;
    }
    if (reader_.Release()) ++rings_to_writer;
    if (!reader_.AskForPackets()) continue;
    while (rings_to_reader.load() == heard) std::this_thread::yield();
    heard = rings_to_reader.load();
  }
  if (reader_.Release()) ++rings_to_writer;
  writing.join();
  EXPECT_GT(rings_to_reader.load() + rings_to_writer.load(), 0u);
}

TEST_F(ShmRingTest, AHeaderLongerThanAgreedBreaksTheRing) {
  ASSERT_TRUE(writer_.Write(Bytes(Contents(0, kMostHeader + 1)), {}));
  EXPECT_FALSE(reader_.Read(&packet_));
  EXPECT_TRUE(reader_.broken());
}

TEST_F(ShmRingTest, PositionsThatCannotBeBreakTheRing) {
  const uint64_t ring = memory_.ring().ring_bytes;
  for (const uint64_t position : {ring + 64, ~uint64_t{0}, uint64_t{1} << 63}) {
    ShmRingReader reader(memory_.ring(), kMostHeader);
    control_.written = position;
    EXPECT_FALSE(reader.Read(&packet_)) << position;
    EXPECT_TRUE(reader.broken()) << position;
    control_.written = 0;
    EXPECT_FALSE(reader.Read(&packet_)) << "for good";
    ShmRingWriter writer(memory_.ring());
    control_.released = position;
    EXPECT_EQ(writer.Room(ring + 1), 0u) << position;
    EXPECT_TRUE(writer.broken()) << position;
    EXPECT_FALSE(writer.Write({}, {})) << position;
    control_.released = 0;
  }
}

// The writer is hostile: anything, anywhere, between any two steps. What the reader hands out stays within the ring.
TEST_F(ShmRingTest, ScribblingLeadsNowhereElse) {
  const ShmRingMemory& ring = memory_.ring();
  const uint8_t* end = ring.packets + 2 * ring.ring_bytes;
  uint64_t handed_out = 0, broken = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    control_.written = control_.released = 0;
    ShmRingWriter writer(ring);
    ShmRingReader reader(ring, kMostHeader);
    for (int step = 0; step < 30 && !reader.broken(); ++step) {
      const std::string payload = Contents(seed, random.Below(5000));
      writer.Write(Bytes(Contents(seed, random.Below(100))), Bytes(payload));
      switch (random.Below(6)) {
        case 0: {
          const uint64_t junk = random.Next() >> random.Below(64);
          std::memcpy(ring.packets + random.Below(ring.ring_bytes / 8) * 8, &junk, sizeof(junk));
          break;
        }
        case 1:
          control_.written += random.Below(4096);
          break;
        case 2:
          control_.written = random.Next() >> random.Below(64);
          break;
        default:
          break;
      }
      while (reader.Read(&packet_)) {
        ++handed_out;
        ASSERT_LE(packet_.header_bytes, kMostHeader);
        ASSERT_GE(packet_.header, ring.packets);
        ASSERT_LE(packet_.payload + packet_.payload_bytes, end);
        ASSERT_LE(reader.held_bytes(), ring.ring_bytes);
      }
      reader.Release();
    }
    broken += reader.broken();
  }
  EXPECT_GT(handed_out, 1000u);
  EXPECT_GT(broken, 1000u);
}

}  // namespace
}  // namespace paceline
