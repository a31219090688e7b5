#include "paceline/interfaces.h"

#include "api/cpp/src/convert.h"
#include "transport/engine/lane_factory.h"

namespace paceline::api {

Result<std::vector<Interface>> ListInterfaces(const std::string& lane) {
  const auto devices = ListLaneDevices(lane);
  if (!devices.ok()) return FromAbsl(devices.status());
  std::vector<Interface> list;
  for (const LaneDeviceInfo& device : *devices) {
    list.push_back({.name = device.name,
                    .usable = device.usable,
                    .loopback = device.loopback,
                    .is_virtual = device.is_virtual,
                    .mtu = device.mtu,
                    .gbps = device.rate.gbps(),
                    .port = device.port,
                    .guid = device.guid,
                    .sysfs = device.sysfs,
                    .places = device.places,
                    .dma_buf_problem = device.dma_buf_problem});
  }
  return list;
}

}  // namespace paceline::api
