package spec

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is the part of a source's description that the configuration needs.
type Kind struct {
	// Name is the name of the kind. It may differ from Type, because a type may have several kinds.
	Name string
	// Type is the kind's type in a configuration.
	Type string
	// Watermark means that the kind is for jobs of its type that have the setting "mode: watermark".
	Watermark bool
	// Key is the form of the key in the configuration.
	Key KeyForm
	// Indexed means that an index lists the changed keys.
	Indexed bool
	// Delivers says whether a record of the source is a state, an increment or an event.
	Delivers Delivers
	// Keeps means that the kind removes nothing from Redis, so several jobs may read the same key.
	Keeps bool
	// Looks means that only reading everything shows whether there are changes.
	Looks bool
	// Columns is an example of a mapping, for kinds whose columns cannot be found by their names.
	Columns string
	// Options are the settings that only some kinds have, with their defaults. The keys are their places in a flush (".from.changed").
	Options map[string]string
	// Lacks are options that other kinds of the same type have and this one lacks, with the reason.
	Lacks map[string]string
}

// KeyForm says which Redis keys the configured key of a source stands for: one key, a range of keys, or all keys that match a pattern.
type KeyForm int

// These are the forms of keys.
const (
	KeyShards  KeyForm = iota // one key, or a range of keys: see ExpandKey
	KeyOfRow                  // a key for each row, by the row's id: see ParseRowKey
	KeyMatched                // every key that matches a pattern: see ParseKeyPattern
	KeyOfAll                  // one key that has all rows
)

// Delivers says whether the records of a source are states, increments or events.
type Delivers int

// These are the sorts of records.
const (
	States     Delivers = iota + 1 // the present state of a row
	Increments                     // a number to add to a row, as $value
	Events                         // an event, which becomes a new row unless the job has a key
)

// Takes reports whether the kind has the given setting.
func (k Kind) Takes(setting string) bool {
	_, ok := k.Options[setting]
	return ok
}

// Keyed reports whether the key in the configuration stands for rows or counters. Otherwise it stands for pending changes.
func (k Kind) Keyed() bool { return k.Key != KeyShards }

// Keys returns the Redis keys that the key in a configuration stands for, or an error if that key is invalid. It returns a pattern
// unchanged.
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
			err = fmt.Errorf("key %q looks like several keys: name one key, and make a job for each key", key)
		}
		return keys, err
	}
	return []string{key}, err
}

// Find returns the kind of source that has the given type and reads the given key. It returns false if no kind fits.
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

// Named returns the kind with the given name. It panics if no kind has that name.
func Named(name string) Kind {
	return kinds[slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == name })]
}
