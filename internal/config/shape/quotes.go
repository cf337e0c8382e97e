package shape

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	// blockValue and flowValue match a value without quotes that begins with a character that YAML reserves. blockValue is for block style,
	// and flowValue is for values inside of brackets.
	blockValue = regexp.MustCompile("^[ \\t]*(?:- +)*(?:([A-Za-z_][\\w.-]*): +)?([@`*%&!][^#]*)")
	flowValue  = regexp.MustCompile("[{,\\[] *(?:([A-Za-z_][\\w.-]*): +)?([@`*%&!][^,}\\]]*)")
	// schedule matches a schedule, which never contains a secret.
	schedule = regexp.MustCompile("^(@[a-z]+( [0-9a-z.]+)?|[-0-9A-Za-z*/,?#LW]+( +[-0-9A-Za-z*/,?#LW]+){4})$")
)

// Unquoted returns the correct spelling of a line whose value lacks quotes. It returns "" if no value lacks quotes. It shows only known
// keys and, of the values, only schedules, because any other value may be a secret.
func Unquoted(text string, line int, known func(key string) bool) string {
	lines := strings.Split(text, "\n")
	if line < 1 || line > len(lines) {
		return ""
	}
	found := blockValue.FindStringSubmatch(lines[line-1])
	if found == nil {
		found = flowValue.FindStringSubmatch(lines[line-1])
	}
	if found == nil {
		return ""
	}
	key, value := found[1], strings.TrimSpace(found[2])
	first, shown := value[:1], "…"
	if key == "schedule" && schedule.MatchString(value) {
		shown = value
	}
	right := fmt.Sprintf("%q", shown)
	if key != "" && known(key) {
		right = key + ": " + right
	}
	return fmt.Sprintf("a text that begins with %s must be in quotes: write %s", first, right)
}
