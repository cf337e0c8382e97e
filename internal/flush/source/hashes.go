package source

import (
	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/source/spec"
	"baton/internal/flush/source/staging"
	"baton/internal/redisconn"
)

// Hashes reads rows that are hashes. An index lists the ids of the changed rows. Hashes is a flush.Source.
type Hashes struct{ indexed }

// NewHashes checks the options and does not connect. The option Key is the pattern of the rows' keys, such as "user:<id>". The option
// Inputs has the captured name ("id"), and fields of the hash. If a field has the same name, the captured name wins.
func NewHashes(store *redisconn.Store, o IndexedOptions) (*Hashes, error) {
	row, err := spec.ParseRowKey(o.Key)
	if err != nil {
		return nil, err
	}
	rows := &rowReader{redis: store, row: row, inputs: o.Inputs}
	for _, input := range o.Inputs {
		if input != row.Name {
			rows.fields = append(rows.fields, input)
		}
	}
	of, err := newIndexed(store, o, rows)
	if err != nil {
		return nil, err
	}
	return &Hashes{of}, nil
}

var hashesSpec = Spec{
	Kind: spec.Named("hashes"),
	idle: staging.Beside,
	inputs: func(o Options) (row.Inputs, error) {
		return captured(o, row.Inputs{Fields: true})
	},
	policy: onMissing,
	commands: func(_ Options, holds string) []string {
		return append(indexCommands(holds), hashCommands...)
	},
	open: func(s *redisconn.Store, key string, o Options, inputs []string) (flush.Source, error) {
		return NewHashes(s, o.indexed(key, inputs))
	},
}

// hashCommands are the commands that read a row.
var hashCommands = []string{"MULTI", "EXISTS R", "HMGET R f", "EXEC", "EVAL s 1 R", "EVALSHA s 1 R"}
