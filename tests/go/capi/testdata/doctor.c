/* Prints malt_inspect("doctor") for the driver to read; and what is meant by a word. */
#include "check.h"

int main(void)
{
	uint64_t need, again;
	FAILS(MALT_EINVAL, "doctor", malt_inspect("docter", NULL, 0, &need));
	FAILS(MALT_EINVAL, "doctor", malt_inspect(NULL, NULL, 0, &need));
	FAILS(MALT_EINVAL, "meant", malt_inspect("meant asp", NULL, 0, &need));
	char word[16];
	OK(malt_inspect("meant asp bsp async", word, sizeof word, &need));
	CHECK(strcmp(word, "async") == 0);
	OK(malt_inspect("doctor", NULL, 0, &need));
	char *text = malloc(need + 1000); /* memory changes, and so does the length */
	OK(malt_inspect("doctor", text, need + 1000, &again));
	CHECK(again <= need + 1000 && strlen(text) + 1 == again);
	puts(text);
	free(text);
	return 0;
}
