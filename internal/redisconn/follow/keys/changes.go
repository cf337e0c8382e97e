package keys

import (
	"bytes"
)

// Visitor receives the keys that a command may have changed. A key is valid until the call returns. The number of a database may be
// follow.AnyDB, which means that the database is unknown.
type Visitor interface {
	Key(db int, key []byte)
	// Flushed means that all keys of a database are gone, or of every database if db is AllDBs.
	Flushed(db int)
	// Swapped means that two databases have exchanged their keys.
	Swapped(a, b int)
}

// AllDBs is an argument of [Visitor.Flushed], and stands for all databases.
const AllDBs = -2

// special is a kind of command for which the server's list of commands does not contain all keys that the command changes.
type special uint8

const (
	ordinary special = iota
	unknown          // any key may have changed
	flushAll
	flushDB
	swapDB
	move     // a key moves from one database to another
	copyKey  // a key is created, perhaps in another database
	sortKeys // an option names the key of the stored list
	geoRadius
	geoRadiusByMember
)

var specials = map[string]special{
	"flushall": flushAll, "flushdb": flushDB, "swapdb": swapDB, "move": move, "copy": copyKey, "sort": sortKeys,
	"georadius": geoRadius, "georadiusbymember": geoRadiusByMember,
	// A script is replicated as the commands that it called, unless lua-replicate-commands is no (before 7.0).
	"eval": unknown, "evalsha": unknown, "fcall": unknown, "migrate": unknown,
}

// Changes passes to v the keys that a command in the database db may have changed. It returns false if it cannot find the keys, so
// that any key may have changed.
func (t *Table) Changes(db int, args [][]byte, v Visitor) bool {
	if len(args) == 0 || args[0] == nil {
		return false
	}
	c := t.find(args)
	switch {
	case c == nil:
		return false
	case c.nothing:
		return true
	case c.special != ordinary:
		return c.special.changes(db, args, v)
	case len(c.specs) == 0: // the command writes, but names no key
		return false
	}
	for i := range c.specs {
		s := &c.specs[i]
		if s.unknown {
			return false
		}
		first, last, ok := s.bounds(args)
		if !ok {
			return false
		}
		for at := first; at > 0 && at <= last; at += s.step {
			if args[at] == nil {
				return false
			}
			v.Key(db, args[at])
		}
	}
	return true
}

func (s special) changes(db int, args [][]byte, v Visitor) bool {
	switch s {
	case flushAll:
		v.Flushed(AllDBs)
		return true
	case flushDB:
		v.Flushed(db)
		return true
	case swapDB:
		if len(args) != 3 {
			return false
		}
		a, okA := atoi(args[1])
		b, okB := atoi(args[2])
		if okA && okB {
			v.Swapped(a, b)
		}
		return okA && okB
	case move:
		if len(args) != 3 || args[1] == nil {
			return false
		}
		to, ok := atoi(args[2])
		v.Key(db, args[1])
		v.Key(to, args[1])
		return ok
	case copyKey:
		return copies(db, args, v)
	case sortKeys:
		return sorts(db, args, v)
	case geoRadius:
		return storesNearby(db, args, 6, v)
	case geoRadiusByMember:
		return storesNearby(db, args, 5, v)
	}
	return false
}

// storesNearby handles GEORADIUS and GEORADIUSBYMEMBER. The argument options is the position where their options begin. These may
// contain "STORE key" and "STOREDIST key". The last of these options counts, which the server's list of commands cannot express.
func storesNearby(db int, args [][]byte, options int, v Visitor) bool {
	store := 0
	for i := options; i+1 < len(args); i++ {
		if bytes.EqualFold(args[i], []byte("store")) || bytes.EqualFold(args[i], []byte("storedist")) {
			i++
			store = i
		}
	}
	return stores(db, args, store, v)
}

// stores passes one of the arguments args to v, as a key that was changed. The argument at is the position of this key, or 0 if
// there is no key.
func stores(db int, args [][]byte, at int, v Visitor) bool {
	switch {
	case at == 0:
		return true
	case args[at] == nil:
		return false
	}
	v.Key(db, args[at])
	return true
}

// copies handles COPY source destination [DB number] [REPLACE].
func copies(db int, args [][]byte, v Visitor) bool {
	if len(args) < 3 || args[2] == nil {
		return false
	}
	for i := 3; i < len(args); i++ {
		if bytes.EqualFold(args[i], []byte("db")) {
			if i+1 == len(args) {
				return false
			}
			var ok bool
			if db, ok = atoi(args[i+1]); !ok {
				return false
			}
			i++
		}
	}
	v.Key(db, args[2])
	return true
}

// sorts handles SORT key [BY pattern] [LIMIT offset count] [GET pattern …] [STORE key]. The last STORE counts.
func sorts(db int, args [][]byte, v Visitor) bool {
	store := 0
	for i := 2; i < len(args); i++ {
		switch word := args[i]; {
		case bytes.EqualFold(word, []byte("limit")):
			i += 2
		case bytes.EqualFold(word, []byte("get")), bytes.EqualFold(word, []byte("by")):
			i++
		case bytes.EqualFold(word, []byte("store")) && i+1 < len(args):
			i++
			store = i
		}
	}
	return stores(db, args, store, v)
}
