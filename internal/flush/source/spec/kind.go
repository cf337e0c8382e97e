package spec

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is what a configuration, and who has no more than that, knows of a kind of sources.
type Kind struct {
	// Name is that of the kind: a type may have several.
	Name string
	// Type is what a configuration calls it.
	Type string
	// Watermark: it is the kind of its type for mode: watermark.
	Watermark bool
	// Key is what the key in the configuration stands for.
	Key KeyForm
	// Indexed: an index has the changed keys.
	Indexed bool
	// Delivers is what a record says.
	Delivers Delivers
	// Keeps: it takes nothing out of Redis, so that several jobs may read the same key.
	Keeps bool
	// Looks: work is found only by reading everything.
	Looks bool
	// Columns is an example of a mapping, where columns cannot be found by their names.
	Columns string
	// Options are the settings that not all kinds have, by their place in a flush
	// (".from.changed"), with their defaults.
	Options map[string]string
	// Lacks are those that another kind of the type has, and why this one has not.
	Lacks map[string]string
}

// KeyForm is what the key of a source stands for.
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
	States     Delivers = iota + 1 // what a row is now
	Increments                     // how much is added to a row, as $value
	Events                         // what has happened: a row of its own, if no key says otherwise
)

// Takes reports whether the kind has this setting.
func (k Kind) Takes(setting string) bool {
	_, ok := k.Options[setting]
	return ok
}

// Keyed reports whether the key is that of rows or counters, and not of pending changes.
func (k Kind) Keyed() bool { return k.Key != KeyShards }

// Keys are those that a key of the configuration stands for, or why it stands for none. A
// pattern stands for itself.
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

// Find is the kind of a type that reads such a key; false if there is none.
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

// Named is the kind of that name; it panics if there is none.
func Named(name string) Kind {
	return kinds[slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == name })]
}
