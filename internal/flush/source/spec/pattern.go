package spec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxShards limits the number of keys to which one pattern expands, because baton polls each of these keys as a separate shard.
const maxShards = 4096

// ExpandKey returns the keys that a key pattern of a configuration names. "[0-15]" expands to the numbers of that range. If the first
// number is padded with zeros ("[00-15]"), all numbers are padded. Several ranges give all combinations, in the order of the ranges. Braces
// stay in the keys, because they mark hash tags in Redis.
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
				return nil, fmt.Errorf("key %q: a bracket is missing: write shards as [0-15]", pattern)
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

// expandRange returns the numbers of a range "[a-b]". The argument body is the text between the brackets.
func expandRange(body string) ([]string, error) {
	first, last, ok := strings.Cut(body, "-")
	lo, errLo := strconv.ParseUint(first, 10, 31)
	hi, errHi := strconv.ParseUint(last, 10, 31)
	if !ok || errLo != nil || errHi != nil {
		return nil, fmt.Errorf("[%s] is not a range of numbers: write shards as [0-15]", body)
	}
	if lo > hi {
		return nil, fmt.Errorf("[%s] begins with the larger number: write [%s-%s]", body, last, first)
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

// refuseTwins refuses a pattern that gives the same key twice, such as "[1-11][1-11]", which gives "111" twice. Two sources would read the
// same key, and each would stage changes that the other source needs.
func refuseTwins(pattern string, keys []string) error {
	seen := make(map[string]bool, len(keys))
	for _, key := range keys {
		if seen[key] {
			return fmt.Errorf("key %q stands for %q twice: put a separator between its ranges", pattern, key)
		}
		seen[key] = true
	}
	return nil
}

// RowKey is the pattern of the keys of rows, such as "user:<id>".
type RowKey struct {
	Prefix, Suffix string
	Name           string // the name of the captured part, such as "id"
}

// ParseRowKey parses a pattern with exactly one <name> in it.
func ParseRowKey(pattern string) (RowKey, error) {
	prefix, rest, opened := strings.Cut(pattern, "<")
	name, suffix, closed := strings.Cut(rest, ">")
	if !opened || !closed || strings.ContainsAny(prefix+suffix, "<>") {
		return RowKey{}, fmt.Errorf("key %q must name the id of a row once, as in user:<id>", pattern)
	}
	if !isName(name) {
		return RowKey{}, fmt.Errorf("key %q: <%s> is not a name: use letters, digits and _, as in <id>", pattern, name)
	}
	if i := strings.IndexAny(prefix+suffix, "[]*"); i >= 0 {
		return RowKey{}, fmt.Errorf("key %q: %q means nothing here: rows are found by their <%s>", pattern, (prefix + suffix)[i:i+1], name)
	}
	return RowKey{Prefix: prefix, Suffix: suffix, Name: name}, nil
}

// Key returns the key of the row with that id.
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

// KeyPattern is the pattern of the keys that a scan reads, such as "stock:<shop>:<item>". It consists of literal texts with captures
// between them.
//
// A capture ends at the first occurrence of the literal text after it, and the last capture contains the rest of the key. In "stock:a:b:c"
// the shop is "a" and the item is "b:c". So each key has only one interpretation, and its captures give the same key again.
type KeyPattern struct {
	// Names are the names of the captures, in order.
	Names []string
	// literals are the texts before, between and after the captures: one more than there are captures.
	literals []string
}

// ParseKeyPattern parses a pattern with one or more <name> in it.
func ParseKeyPattern(pattern string) (KeyPattern, error) {
	var k KeyPattern
	rest := pattern
	for {
		literal, after, opened := strings.Cut(rest, "<")
		if i := strings.IndexAny(literal, "[]*>"); i >= 0 {
			return KeyPattern{}, fmt.Errorf("key %q: %q means nothing here: a part of the key that varies is written <name>",
				pattern, literal[i:i+1])
		}
		if len(k.Names) > 0 && opened && literal == "" {
			return KeyPattern{}, fmt.Errorf("key %q: it is unclear where <%s> ends and the next part begins: put a separator "+
				"between them",
				pattern, k.Names[len(k.Names)-1])
		}
		k.literals = append(k.literals, literal)
		if !opened {
			break
		}
		name, next, closed := strings.Cut(after, ">")
		switch {
		case !closed || !isName(name):
			return KeyPattern{}, fmt.Errorf("key %q: <%s> is not a name: use letters, digits and _, as in <id>", pattern, name)
		case slices.Contains(k.Names, name):
			return KeyPattern{}, fmt.Errorf("key %q: <%s> occurs twice: give each part its own name", pattern, name)
		}
		k.Names = append(k.Names, name)
		rest = next
	}
	if len(k.Names) == 0 {
		return KeyPattern{}, fmt.Errorf("key %q must name the parts that vary, as in session:<id>", pattern)
	}
	return k, nil
}

// String returns the pattern.
func (k KeyPattern) String() string {
	var b strings.Builder
	for i, literal := range k.literals {
		if i > 0 {
			b.WriteString("<" + k.Names[i-1] + ">")
		}
		b.WriteString(literal)
	}
	return b.String()
}

// Key returns the key with the given captures, which are in the order of Names.
func (k KeyPattern) Key(captures []string) string {
	var b strings.Builder
	for i, literal := range k.literals {
		if i > 0 {
			b.WriteString(captures[i-1])
		}
		b.WriteString(literal)
	}
	return b.String()
}

// Prefix returns the literal text with which every matching key begins.
func (k KeyPattern) Prefix() string { return k.literals[0] }

// Match appends the captures of a key to the slice into. It returns false if the key does not match.
func (k KeyPattern) Match(key string, into []string) ([]string, bool) {
	last := len(k.Names) - 1
	rest, ok := strings.CutPrefix(key, k.literals[0])
	if !ok {
		return into, false
	}
	captures := into
	for _, literal := range k.literals[1 : last+1] {
		capture, after, ok := strings.Cut(rest, literal)
		if !ok {
			return into, false
		}
		captures, rest = append(captures, capture), after
	}
	if rest, ok = strings.CutSuffix(rest, k.literals[last+1]); !ok {
		return into, false
	}
	return append(captures, rest), true
}

// Literals returns the texts before, between and after the captures.
func (k KeyPattern) Literals() []string { return k.literals }
