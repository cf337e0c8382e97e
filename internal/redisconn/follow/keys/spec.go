package keys

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/gomodule/redigo/redis"
)

// spec says where some keys of a command are: the place of the first key, and the number of keys. Redis documents the format under
// "Command key specifications".
type spec struct {
	index   int    // the argument where the keys begin; less than 0: after a keyword
	keyword []byte // the search for the keyword begins at start; a negative start counts from the end
	start   int

	counted  bool // an argument contains the number of keys
	last     int  // the last key, relative to the first key; a negative number counts from the end of the arguments
	limit    int  // if last is negative, only the first 1/limit of the remaining arguments may be keys
	countAt  int  // the argument with the number of keys, relative to the place where the keys begin
	firstKey int  // the first key, relative to the same place
	step     int

	unknown bool
}

// legacySpec makes a spec from the numbers of the first key, the last key and the step. Servers before Redis 7.0 give only these
// three numbers.
func legacySpec(l [3]int) spec {
	s := spec{index: l[0], last: l[1], step: max(l[2], 1)}
	if s.last > 0 {
		s.last -= s.index
	}
	s.unknown = s.absurd()
	return s
}

// parseSpecs reads the key specifications of a command. It leaves out the keys that the command only reads.
func parseSpecs(reply any) ([]spec, error) {
	list, err := redis.Values(reply, nil)
	if err != nil {
		return nil, err
	}
	var specs []spec
	for _, one := range list {
		m, err := pairs(one)
		if err != nil {
			return nil, err
		}
		flags, err := redis.Strings(m["flags"], nil)
		if err != nil {
			return nil, err
		}
		if slices.Contains(flags, "not_key") || slices.Contains(flags, "RO") && !slices.Contains(flags, "variable_flags") {
			continue
		}
		var s spec
		if err := s.begins(m["begin_search"]); err != nil {
			return nil, err
		}
		if err := s.finds(m["find_keys"]); err != nil {
			return nil, err
		}
		s.unknown = s.unknown || s.absurd() || slices.Contains(flags, "incomplete")
		specs = append(specs, s)
	}
	return specs, nil
}

// absurd reports whether the spec has numbers that no server sends. They would point to keys outside the command.
func (s *spec) absurd() bool {
	for _, n := range []int{s.index, s.start, s.last, s.limit, s.countAt, s.firstKey, s.step} {
		if n < -mostArguments || n > mostArguments {
			return true
		}
	}
	return s.countAt < 0 || s.firstKey < 0 || s.index < 0 && s.keyword == nil
}

// mostArguments limits the numbers in a spec. No command in the stream has as many arguments.
const mostArguments = 1 << 20

// pairs reads a map that is sent as a flat list.
func pairs(reply any) (map[string]any, error) {
	list, err := redis.Values(reply, nil)
	if err != nil || len(list)%2 != 0 {
		return nil, fmt.Errorf("a key specification is no map: %w", err)
	}
	m := make(map[string]any, len(list)/2)
	for i := 0; i < len(list); i += 2 {
		name, err := redis.String(list[i], nil)
		if err != nil {
			return nil, err
		}
		m[name] = list[i+1]
	}
	return m, nil
}

func typed(reply any) (kind string, of map[string]any, err error) {
	m, err := pairs(reply)
	if err != nil {
		return "", nil, err
	}
	if kind, err = redis.String(m["type"], nil); err != nil || kind == "unknown" {
		return kind, nil, err
	}
	of, err = pairs(m["spec"])
	return kind, of, err
}

func numbers(of map[string]any, names ...string) ([]int, error) {
	all := make([]int, len(names))
	for i, name := range names {
		var err error
		if all[i], err = redis.Int(of[name], nil); err != nil {
			return nil, fmt.Errorf("%s of a key specification: %w", name, err)
		}
	}
	return all, nil
}

func (s *spec) begins(reply any) error {
	kind, of, err := typed(reply)
	if err != nil {
		return err
	}
	switch kind {
	case "index":
		n, err := numbers(of, "index")
		if err == nil {
			s.index = n[0]
		}
		return err
	case "keyword":
		word, err := redis.String(of["keyword"], nil)
		if err != nil {
			return err
		}
		n, err := numbers(of, "startfrom")
		if err == nil {
			s.index, s.keyword, s.start = -1, []byte(strings.ToLower(word)), n[0]
		}
		return err
	}
	s.unknown = true
	return nil
}

func (s *spec) finds(reply any) error {
	kind, of, err := typed(reply)
	if err != nil {
		return err
	}
	switch kind {
	case "range":
		n, err := numbers(of, "lastkey", "keystep", "limit")
		if err == nil {
			s.last, s.step, s.limit = n[0], max(n[1], 1), n[2]
		}
		return err
	case "keynum":
		n, err := numbers(of, "keynumidx", "firstkey", "keystep")
		if err == nil {
			s.counted, s.countAt, s.firstKey, s.step = true, n[0], n[1], max(n[2], 1)
		}
		return err
	}
	s.unknown = true
	return nil
}

// bounds returns the positions of the first and the last key of the spec among the arguments. The result first is 0 if there are no
// keys. The result ok is false if the arguments do not fit the spec.
func (s *spec) bounds(args [][]byte) (first, last int, ok bool) {
	if first = s.index; first < 0 {
		if first = s.behindKeyword(args); first == 0 {
			return 0, 0, true
		}
	}
	switch {
	case s.counted:
		at := first + s.countAt
		if at < 0 || at >= len(args) {
			return 0, 0, false
		}
		n, good := atoi(args[at])
		if !good || n < 0 || n > len(args) {
			return 0, 0, false
		}
		if n == 0 {
			return 0, 0, true
		}
		first += s.firstKey
		last = first + (n-1)*s.step
	case s.last >= 0:
		last = first + s.last
	case s.limit > 1:
		last = first + (len(args)-first)/s.limit + s.last
	default:
		last = len(args) + s.last
	}
	return first, last, first > 0 && first <= last && last < len(args)
}

func (s *spec) behindKeyword(args [][]byte) int {
	at, end, by := s.start, len(args)-1, 1
	if s.start < 0 {
		at, end, by = len(args)+s.start, 0, -1
	}
	for ; at > 0 && at < len(args) && at != end; at += by {
		if bytes.EqualFold(args[at], s.keyword) {
			return at + 1
		}
	}
	return 0
}

func atoi(text []byte) (n int, ok bool) {
	if len(text) == 0 || len(text) > 9 {
		return 0, false
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}
