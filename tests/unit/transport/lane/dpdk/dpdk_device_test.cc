#include "transport/lane/dpdk/dpdk_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace paceline {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(const std::string& text) { return std::string(ParseDpdkDevice(text).status().message()); }

TEST(DpdkDevice, OwnSettingsAreTakenOutAndTheDriversStay) {
  const auto device = ParseDpdkDevice("net_memif0,role=server,address=192.0.2.1/24,udp_port=5000,socket=/run/a,b=c=d");
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ(device->name, "net_memif0");
  EXPECT_EQ(device->devargs, "net_memif0,role=server,socket=/run/a,b=c=d");
  EXPECT_EQ(device->version, IpVersion::kV4);
  EXPECT_EQ(device->address, (IpAddress{192, 0, 2, 1}));
  EXPECT_EQ(device->prefix_bits, 24);
  EXPECT_EQ(device->udp_port, 5000);
  EXPECT_FALSE(device->gateway.has_value());
}

TEST(DpdkDevice, QueuesAreOursAndThoseOfDriversThatMakeThemBeforehand) {
  const auto devargs = [](const std::string& name) {
    const auto device = ParseDpdkDevice(name + ",queues=4,address=192.0.2.1");
    EXPECT_EQ(device->queues, 4);
    return device->devargs;
  };
  EXPECT_EQ(devargs("0000:3b:00.0"), "0000:3b:00.0");
  EXPECT_EQ(devargs("3b:00.0"), "0000:3b:00.0");
  EXPECT_EQ(devargs("00010000:3b:00.0"), "00010000:3b:00.0");
  EXPECT_EQ(devargs("net_memif0"), "net_memif0");
  EXPECT_EQ(devargs("net_af_packet0,iface=v0"), "net_af_packet0,iface=v0,qpairs=4");
  EXPECT_EQ(devargs("net_af_packet0,iface=v0,qpairs=2"), "net_af_packet0,iface=v0,qpairs=2");
  EXPECT_EQ(devargs("net_vhost0,iface=/run/a"), "net_vhost0,iface=/run/a,queues=4");
  const auto without = ParseDpdkDevice("net_af_packet0,iface=v0,address=192.0.2.1");
  EXPECT_EQ(without->queues, 0);
  EXPECT_EQ(without->devargs, "net_af_packet0,iface=v0");
}

TEST(DpdkDevice, PciAddressIpv6AndGateway) {
  const auto device = ParseDpdkDevice("0000:3b:00.0,gateway=fd00::ff,address=fd00::1/64");
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ(device->devargs, "0000:3b:00.0");
  EXPECT_EQ(device->version, IpVersion::kV6);
  EXPECT_EQ(device->address[15], 1);
  EXPECT_EQ(device->prefix_bits, 64);
  ASSERT_TRUE(device->gateway.has_value());
  EXPECT_EQ((*device->gateway)[15], 0xff);
  EXPECT_EQ(device->udp_port, DpdkDevice::kDefaultUdpPort);
}

TEST(DpdkDevice, ErrorsNameThePortTheKeyAndWhatItMayBe) {
  EXPECT_THAT(ErrorOf("net_null0"), HasSubstr("net_null0,address=192.0.2.1/24"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("PCI address"));
  EXPECT_THAT(ErrorOf("address=192.0.2.1"), HasSubstr("begin with"));
  for (const char* address : {"", "192.0.2", "192.0.2.1/0", "192.0.2.1/33", "192.0.2.1/24/1", "192.0.2.1/x", "host",
                              "224.0.0.1", "0.0.0.0", "::", "ff02::1", "fd00::1/129", "192.0.2.1:5000"}) {
    EXPECT_THAT(ErrorOf(std::string("net_null0,address=") + address), HasSubstr("write an address")) << address;
  }
  for (const char* port : {"0", "65536", "-1", "x", ""}) {
    EXPECT_THAT(ErrorOf(std::string("net_null0,address=192.0.2.1,udp_port=") + port), HasSubstr("1 to 65535")) << port;
  }
  for (const char* queues : {"0", "65", "-1", "x", ""}) {
    EXPECT_THAT(ErrorOf(std::string("net_null0,address=192.0.2.1,queues=") + queues), HasSubstr("1 to 64")) << queues;
  }
  for (const char* word : {"2", "yes", ""}) {
    for (const char* key : {"send_on_time", "card_reads"}) {
      EXPECT_THAT(ErrorOf(std::string("net_null0,address=192.0.2.1,") + key + "=" + word), HasSubstr("1 or 0")) << word;
    }
  }
  for (const char* settings : {"address=192.0.2.1/24,gateway=fd00::1", "address=192.0.2.1/24,gateway=x",
                               "address=192.0.2.1,gateway=192.0.2.2"}) {
    EXPECT_THAT(ErrorOf(std::string("net_null0,") + settings), HasSubstr("gateway")) << settings;
  }
}

TEST(DpdkDevice, ReadsTheNumbersOfDrivers) {
  EXPECT_EQ(DpdkDriverNumber("iface=v0,framesz=4096", "framesz", 2048), 4096u);
  EXPECT_EQ(DpdkDriverNumber("iface=v0,framesz=4096,framesz=8192", "framesz", 2048), 8192u);
  for (const char* none : {"", "iface=v0", "framesz=many", "aframesz=4096", "framesz"}) {
    EXPECT_EQ(DpdkDriverNumber(none, "framesz", 2048), 2048u) << none;
  }
}

TEST(DpdkDevice, TellsPciAddressesFromNames) {
  for (const char* name : {"0000:3b:00.0", "3b:00.1", "00010000:ff:1f.7"}) EXPECT_TRUE(IsPciAddress(name)) << name;
  for (const char* name : {"net_memif0", "", "eth0.1", "0000:3b:00", "3b.0", "xx:00.0", "0:0:3b:00.0", "3b:00.00"}) {
    EXPECT_FALSE(IsPciAddress(name)) << name;
  }
}

}  // namespace
}  // namespace paceline
