/* What c_usage.c does with the C interface, for c_test.cc to check. */
#ifndef PACELINE_TESTS_UNIT_API_C_USAGE_H_
#define PACELINE_TESTS_UNIT_API_C_USAGE_H_

#ifdef __cplusplus
extern "C" {
#endif

/* Two contexts in one process: connects them, sends, writes, adds, reads counters. Null, or what went wrong. */
const char* paceline_test_use_everything(unsigned progress, unsigned engines);

#ifdef __cplusplus
}
#endif

#endif
