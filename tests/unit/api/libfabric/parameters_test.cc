// What a user sets by libfabric's own kind of parameters.
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "tests/unit/api/libfabric/fabric_fixture.h"

namespace paceline::libfabric {
namespace {

// A variable of the environment for as long as it lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

// What opening a domain gives, which is closed again.
int OpenDomain() {
  const Info info = GetInfo();
  if (info == nullptr) return -FI_ENODATA;
  fid_fabric* fabric = nullptr;
  EXPECT_EQ(fi_fabric(info->fabric_attr, &fabric, nullptr), 0);
  fid_domain* domain = nullptr;
  const int result = fi_domain(fabric, info.get(), &domain, nullptr);
  if (domain != nullptr) {
    EXPECT_EQ(fi_close(&domain->fid), 0);
  }
  EXPECT_EQ(fi_close(&fabric->fid), 0);
  return result;
}

TEST(ParametersTest, LibfabricListsThem) {
  ASSERT_NE(GetInfo(), nullptr);  // the provider is loaded
  fi_param* parameters = nullptr;
  int count = 0;
  ASSERT_EQ(fi_getparams(&parameters, &count), 0);
  std::set<std::string> found;
  for (int i = 0; i < count; ++i) {
    if (std::string_view(parameters[i].name).starts_with("FI_PACELINE_")) found.insert(parameters[i].name);
  }
  fi_freeparams(parameters);
  EXPECT_EQ(found, (std::set<std::string>{"FI_PACELINE_BIND", "FI_PACELINE_CC", "FI_PACELINE_CC_PARAMETERS",
                                          "FI_PACELINE_ENCRYPT", "FI_PACELINE_KEY_FILE", "FI_PACELINE_LANE"}));
}

TEST(ParametersTest, TheyAreTheOptionsOfADomain) {
  EXPECT_EQ(OpenDomain(), 0);
  for (const char* name : {"FI_PACELINE_LANE", "FI_PACELINE_CC", "FI_PACELINE_CC_PARAMETERS", "FI_PACELINE_KEY_FILE"}) {
    const Variable wrong(name, "/nothing=of-this-kind");
    EXPECT_NE(OpenDomain(), 0) << name;
  }
  const Variable encrypt("FI_PACELINE_ENCRYPT", "perhaps");
  EXPECT_EQ(OpenDomain(), -FI_EINVAL);
}

TEST(ParametersTest, TheyNameTheInterfacesAndTheLane) {
  {
    const Variable bind("FI_PACELINE_BIND", "127.0.0.1,lo");
    EXPECT_EQ(GetInfo(), nullptr);  // of "lo" alone
    const Info info =
        GetInfo([](fi_info& hints) { std::free(std::exchange(hints.domain_attr->name, strdup("127.0.0.1,lo"))); });
    ASSERT_NE(info, nullptr);
    EXPECT_EQ(info->next->ep_attr->type, FI_EP_MSG);  // one domain for each type
  }
  const Variable lane("FI_PACELINE_LANE", "shm");
  EXPECT_EQ(GetInfo()->src_addr, nullptr);
}

TEST(ParametersTest, ThePacelineVariableOfTheSameNameComesFirst) {
  const Variable wrong("FI_PACELINE_CC", "nothing of this kind");
  EXPECT_NE(OpenDomain(), 0);
  const Variable right("PACELINE_CC", "tita");
  EXPECT_EQ(OpenDomain(), 0);
}

}  // namespace
}  // namespace paceline::libfabric
