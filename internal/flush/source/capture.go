package source

import (
	"cmp"
	"fmt"
	"slices"

	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/source/capture"
	"baton/internal/flush/source/spec"
	"baton/internal/redisconn"
)

// CaptureInputs returns the inputs that a capture of these keys can deliver. These are the inputs of a scan, except $generation.
func CaptureInputs(key, value string) (row.Inputs, error) {
	in, err := ScanInputs(key, value)
	in.Names = slices.DeleteFunc(in.Names, func(name string) bool { return name == row.InputGeneration })
	in.Guarantee = row.ByChanges
	return in, err
}

var captureSpec = Spec{
	Kind: spec.Named("capture"),
	inputs: func(o Options) (row.Inputs, error) {
		in, err := CaptureInputs(o.Key, o.Value)
		in.Spelled = o.OnMissing != "ignore" // as in the policy below
		return in, err
	},
	policy: func(o Options) (flush.Policy, error) {
		p := flush.Policy{OnMissing: flush.OnMissing(cmp.Or(o.OnMissing, "delete"))}
		switch p.OnMissing {
		case "delete", "null":
			p.VanishedPct = cmp.Or(o.MaxPct, 10)
		case "ignore":
		default:
			return p, fmt.Errorf("on_missing: %q is unknown: use delete, ignore or null", o.OnMissing)
		}
		return p, nil
	},
	commands: func(o Options, holds string) []string { // PSYNC is not listed, because it cannot be checked in a transaction
		return append(scanSpec.commands(o, holds), "COMMAND", "REPLCONF ACK 1", "PUBLISH baton:capture x")
	},
	// CLUSTER NODES shows the slots of a master. In a Cluster, baton uses SET instead of PUBLISH, because the replication stream of a
	// Cluster contains no publications.
	clusterCommands: []string{"CLUSTER NODES", "SET baton:capture x"},
	open: func(s *redisconn.Store, key string, o Options, inputs []string) (flush.Source, error) {
		keys, err := NewScan(s, ScanOptions{Job: o.Job, Key: key, Value: o.Value, Inputs: inputs, PageRows: o.Rows, BatchBytes: o.Bytes})
		if err != nil {
			return nil, err
		}
		return capture.New(s, keys, capture.Options{Job: o.Job, Prefix: keys.pattern.Prefix(), OnFlush: o.OnFlush})
	},
	release: func(s *redisconn.Store, o Options) error { return capture.Release(s, o.Job, o.Key) },
}
