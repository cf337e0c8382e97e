package flush

import (
	"fmt"
	"strconv"
	"strings"
)

// maxShards bounds what one key pattern may expand to: every shard is polled.
const maxShards = 4096

// ExpandKey turns the key pattern of a configuration into the keys that it
// stands for. "[0-15]" expands to the numbers of that range, zero-padded if its
// first bound is ("[00-15]"); several ranges multiply. Braces stay what they are
// to Redis: hash tags. The keys come in the order of the ranges.
func ExpandKey(pattern string) ([]string, error) {
	if pattern == "" {
		return nil, fmt.Errorf("key is empty: name a Redis key")
	}
	if i := strings.IndexAny(pattern, "<>*"); i >= 0 {
		return nil, fmt.Errorf("key %q: %q means nothing here: name one key, or shards as [0-15]", pattern, pattern[i:i+1])
	}
	keys := []string{""}
	for rest := pattern; rest != ""; {
		var text string
		shards := []string{""}
		open := strings.IndexAny(rest, "[]")
		if open < 0 {
			text, rest = rest, ""
		} else {
			body, after, closed := strings.Cut(rest[open+1:], "]")
			if rest[open] == ']' || !closed {
				return nil, fmt.Errorf("key %q: a bracket has no partner: write shards as [0-15]", pattern)
			}
			var err error
			if shards, err = expandRange(body); err != nil {
				return nil, fmt.Errorf("key %q: %w", pattern, err)
			}
			text, rest = rest[:open], after
		}
		if len(keys)*len(shards) > maxShards {
			return nil, fmt.Errorf("key %q expands to more than %d keys: use fewer shards", pattern, maxShards)
		}
		keys = product(keys, text, shards)
	}
	return keys, refuseTwins(pattern, keys)
}

// expandRange reads the inside of "[a-b]".
func expandRange(body string) ([]string, error) {
	first, last, ok := strings.Cut(body, "-")
	lo, errLo := strconv.ParseUint(first, 10, 31)
	hi, errHi := strconv.ParseUint(last, 10, 31)
	if !ok || errLo != nil || errHi != nil {
		return nil, fmt.Errorf("[%s] is no range of numbers: write shards as [0-15]", body)
	}
	if lo > hi {
		return nil, fmt.Errorf("[%s] runs backwards: write [%s-%s]", body, last, first)
	}
	if hi-lo >= maxShards {
		return nil, fmt.Errorf("[%s] expands to more than %d keys: use fewer shards", body, maxShards)
	}
	width := 0
	if strings.HasPrefix(first, "0") {
		width = len(first)
	}
	shards := make([]string, 0, hi-lo+1)
	for n := lo; n <= hi; n++ {
		shards = append(shards, fmt.Sprintf("%0*d", width, n))
	}
	return shards, nil
}

func product(keys []string, text string, shards []string) []string {
	out := make([]string, 0, len(keys)*len(shards))
	for _, key := range keys {
		for _, shard := range shards {
			out = append(out, key+text+shard)
		}
	}
	return out
}

// refuseTwins catches adjacent ranges such as "[1-11][1-11]", which name "111"
// twice: two readers of one key would stage it from under each other.
func refuseTwins(pattern string, keys []string) error {
	seen := make(map[string]bool, len(keys))
	for _, key := range keys {
		if seen[key] {
			return fmt.Errorf("key %q names %q twice: put something between its ranges", pattern, key)
		}
		seen[key] = true
	}
	return nil
}

// RowKey is the pattern of the keys of rows, such as "user:<id>".
type RowKey struct {
	Prefix, Suffix string
	Name           string // of the captured part: "id"
}

// ParseRowKey reads a pattern with exactly one <name> in it.
func ParseRowKey(pattern string) (RowKey, error) {
	prefix, rest, opened := strings.Cut(pattern, "<")
	name, suffix, closed := strings.Cut(rest, ">")
	if !opened || !closed || strings.ContainsAny(prefix+suffix, "<>") {
		return RowKey{}, fmt.Errorf("key %q must name the id of a row once, as in user:<id>", pattern)
	}
	if !isName(name) {
		return RowKey{}, fmt.Errorf("key %q: <%s> is no name: use letters, digits and _, as in <id>", pattern, name)
	}
	if i := strings.IndexAny(prefix+suffix, "[]*"); i >= 0 {
		return RowKey{}, fmt.Errorf("key %q: %q means nothing here: rows are found by their <%s>", pattern, (prefix + suffix)[i:i+1], name)
	}
	return RowKey{Prefix: prefix, Suffix: suffix, Name: name}, nil
}

// Key is the key of the row with that id.
func (k RowKey) Key(id string) string { return k.Prefix + id + k.Suffix }

func isName(s string) bool {
	for i, r := range s {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}
