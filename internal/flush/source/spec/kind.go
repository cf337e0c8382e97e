package spec

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is a kind of sources, as far as the configuration needs it.
type Kind struct {
	// Name is the kind's name: a type may have several kinds.
	Name string
	// Type is its name in a configuration.
	Type string
	// Watermark: it is the type's kind for mode: watermark.
	Watermark bool
	// Key is the meaning of the key in the configuration.
	Key KeyForm
	// Indexed: an index lists the changed keys.
	Indexed bool
	// Delivers is the meaning of a record.
	Delivers Delivers
	// Keeps: it removes nothing from Redis, so that several jobs may read the same key.
	Keeps bool
	// Looks: only reading everything finds work.
	Looks bool
	// Columns is an example of a mapping, for kinds whose columns are not found by their names.
	Columns string
	// Options are the settings that not all kinds have, by their place in a flush
	// (".from.changed"), with their defaults.
	Options map[string]string
	// Lacks are the options of the type's other kinds that this one lacks, with the reason.
	Lacks map[string]string
}

// KeyForm is the meaning of a source's key.
type KeyForm int

// The forms of keys.
const (
	KeyShards  KeyForm = iota // one key, or a range of them: ExpandKey
	KeyOfRow                  // a key for each row, by its id: ParseRowKey
	KeyMatched                // every key that matches: ParseKeyPattern
	KeyOfAll                  // one key that has all rows
)

// Delivers is the meaning of a source's records.
type Delivers int

// The meanings of records.
const (
	States     Delivers = iota + 1 // the present state of a row
	Increments                     // a number to add to a row, as $value
	Events                         // an event: a row of its own, if no key says otherwise
)

// Takes reports whether the kind has this setting.
func (k Kind) Takes(setting string) bool {
	_, ok := k.Options[setting]
	return ok
}

// Keyed reports whether the key belongs to rows or counters, and not to pending changes.
func (k Kind) Keyed() bool { return k.Key != KeyShards }

// Keys are the keys of a configuration's key, or the error in it. A pattern stands for itself.
func (k Kind) Keys(key string) ([]string, error) {
	var err error
	switch k.Key {
	case KeyShards:
		return ExpandKey(key)
	case KeyOfRow:
		_, err = ParseRowKey(key)
	case KeyMatched:
		_, err = ParseKeyPattern(key)
	case KeyOfAll:
		keys, err := ExpandKey(key)
		if err == nil && !slices.Equal(keys, []string{key}) {
			err = fmt.Errorf("key %q looks like several keys: name one, in a job for each", key)
		}
		return keys, err
	}
	return []string{key}, err
}

// Find is the kind of a type that reads such a key; false without one.
func Find(sourceType, key string, watermark bool) (Kind, bool) {
	of := slices.DeleteFunc(Kinds(), func(k Kind) bool { return k.Type != sourceType })
	if len(of) == 1 {
		return of[0], true
	}
	keyed := strings.Contains(key, "<")
	i := slices.IndexFunc(of, func(k Kind) bool { return k.Keyed() == keyed && k.Watermark == watermark })
	if i < 0 {
		return Kind{}, false
	}
	return of[i], true
}

// Named is the kind of that name; it panics without one.
func Named(name string) Kind {
	return kinds[slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == name })]
}
