package spec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxShards bounds the keys of one pattern: every shard is polled.
const maxShards = 4096

// ExpandKey returns the keys that a key pattern of a configuration names. "[0-15]" expands to the numbers of that range, zero-padded if
// its first bound is ("[00-15]"); several ranges multiply. Braces keep Redis' meaning: hash tags. The keys come in the order of the
// ranges.
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

// KeyPattern is the pattern of the keys that a scan reads, such as
// "stock:<shop>:<item>": literal texts with captures between them.
//
// A capture ends where the text after it first occurs, and the last one takes the rest: "stock:a:b:c" is the item "b:c" of the shop "a".
// So a key has one reading, and the captures of a key make that key again.
type KeyPattern struct {
	// Names are those of the captures, in order.
	Names []string
	// literals stand before, between and after the captures: one more than captures.
	literals []string
}

// ParseKeyPattern reads a pattern with one or more <name> in it.
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
			return KeyPattern{}, fmt.Errorf("key %q: <%s> is no name: use letters, digits and _, as in <id>", pattern, name)
		case slices.Contains(k.Names, name):
			return KeyPattern{}, fmt.Errorf("key %q: <%s> is there twice: give each part a name of its own", pattern, name)
		}
		k.Names = append(k.Names, name)
		rest = next
	}
	if len(k.Names) == 0 {
		return KeyPattern{}, fmt.Errorf("key %q must name the parts that vary, as in session:<id>", pattern)
	}
	return k, nil
}

// String is the pattern.
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

// Key is the key with those captures, in the order of Names.
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

// Prefix is the beginning of every key.
func (k KeyPattern) Prefix() string { return k.literals[0] }

// Match appends the captures of a key to into; false if the key does not match.
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

// Literals are the texts before, between and after the captures.
func (k KeyPattern) Literals() []string { return k.literals }
