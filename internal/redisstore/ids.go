package redisstore

import (
	"slices"
	"strings"
)

// sortIDs sorts ids as a database's key would: by number if all of them are
// integers (of any size), else by bytes. Only speed depends on it.
func sortIDs(ids []string) {
	if slices.ContainsFunc(ids, func(id string) bool { return !isInteger(id) }) {
		slices.Sort(ids)
		return
	}
	slices.SortFunc(ids, compareIntegers)
}

func isInteger(s string) bool {
	digits := strings.TrimPrefix(s, "-")
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return false
		}
	}
	return digits != ""
}

// compareIntegers orders "-7" < "7" < "07" < "10"; equal numbers by their text,
// so that only equal texts are equal.
func compareIntegers(a, b string) int {
	negative := strings.HasPrefix(a, "-")
	if other := strings.HasPrefix(b, "-"); negative != other {
		if negative {
			return -1
		}
		return 1
	}
	x := strings.TrimLeft(strings.TrimPrefix(a, "-"), "0")
	y := strings.TrimLeft(strings.TrimPrefix(b, "-"), "0")
	order := len(x) - len(y)
	if order == 0 {
		order = strings.Compare(x, y)
	}
	if negative {
		order = -order
	}
	if order == 0 {
		return strings.Compare(b, a)
	}
	return order
}
