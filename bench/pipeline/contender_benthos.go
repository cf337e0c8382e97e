package main

import (
	"fmt"
	"strings"

	"baton/bench/internal/rig"
)

// These are the outputs to try.
const (
	outputInsert = "sql_insert" // many rows of parameters in one statement
	// A batch is one parameter, a JSON array that the database splits into rows.
	outputJSON = "sql_raw with json_to_recordset"
	// This output is the same, but a broker makes the batches right after the input.
	outputBrokered = "broker, sql_raw with json_to_recordset"
)

// benthosContender returns Benthos with its own inputs and outputs. It uses settings that cost nothing or help: the maximum number of
// entries in one read, as many idle connections as writers, no HTTP server, and, if there is a choice, no repetition of rows that the
// database refuses. If the database splits a batch, the batch is in the order of the key, as with baton. There are ten acknowledgements
// per second instead of one, so that fewer entries are read again after a crash.
func benthosContender() contender {
	return contender{name: nameBenthos, title: "Benthos", settings: benthosSettings, share: 2,
		start: func(l *lab, f flow, t target, s setting) (*rig.Process, error) {
			file, err := l.config("benthos.yaml", benthosConfig(l, f, t, s))
			if err != nil {
				return nil, err
			}
			return rig.Launch([]string{l.programs.benthos, "-c", file})
		}}
}

// benthosSettings returns the settings to try. There are fewer settings if the reading of single entries takes most of the time.
func benthosSettings(f flow) (all []setting) {
	for _, output := range []string{outputInsert, outputJSON, outputBrokered} {
		for _, batch := range []int{1000, 5000} {
			for _, writers := range []int{1, 2, 8} {
				worth := f.source == flowStream || writers == 2 && output != outputBrokered
				if worth && (output != outputInsert || batch == 1000) { // 30,000 parameters are slow
					all = append(all, setting{output, batch, writers, batchPeriod})
				}
			}
		}
	}
	return all
}

const batchPeriod = "50ms"

func benthosConfig(l *lab, f flow, t target, s setting) string {
	input, output, pipeline := benthosInput(l, f), benthosOutput(l, f, t, s), ""
	if s.output == outputBrokered {
		input, output, pipeline = brokered(input, output, s)
	}
	return fmt.Sprintf("http: {enabled: false}\nlogger: {level: ERROR}\ninput:\n%s\n%soutput:\n%s\n",
		indent(input), pipeline, indent(output))
}

// brokered moves the batching and the work on a batch from the output to the input and the pipeline, which has a thread for each core.
func brokered(input, output string, s setting) (in, out, pipeline string) {
	out, processors, _ := strings.Cut(output, "  batching:\n")
	_, processors, _ = strings.Cut(processors, "    processors:\n")
	in = "broker:\n  inputs:\n    - " + input + fmt.Sprintf("\n  batching: {count: %d, period: %s}", s.batch, s.period)
	return in, out, "pipeline:\n  processors:\n" + processors + "\n"
}

func benthosInput(l *lab, f flow) string {
	url := "redis://" + l.redis.Addr()
	switch f.source {
	case flowStream:
		// The entry's fields come as metadata, so that no parsing is needed.
		return fmt.Sprintf("redis_streams: {url: %q, auto_replay_nacks: false, body_key: id, streams: [%s], limit: 5000, commit_period: 100ms, client_id: bench, consumer_group: bench}", url, streamKey)
	case flowList:
		return fmt.Sprintf("redis_list: {url: %q, key: %s}", url, listKey)
	default:
		return fmt.Sprintf("redis_scan: {url: %q, match: %q}", url, scanned+"*")
	}
}

// columns returns the columns of users, in the order of the table.
func columns() []string { return []string{"id", "name", "email", "bio", "visits", "seen"} }

func onConflict(t target) string {
	if !t.upsert {
		return ""
	}
	var set []string
	for _, c := range columns()[1:] {
		set = append(set, c+" = excluded."+c)
	}
	return "ON CONFLICT (id) DO UPDATE SET " + strings.Join(set, ", ")
}

// row returns a Bloblang expression for each column.
func (f flow) row() []string {
	var out []string
	for _, c := range columns() {
		switch {
		case f.source == flowStream && c == "id":
			out = append(out, "content().string()")
		case f.source == flowStream:
			out = append(out, fmt.Sprintf("meta(%q)", c))
		case f.source == flowScan:
			out = append(out, "$row."+c)
		default:
			out = append(out, "this."+c)
		}
	}
	return out
}

func benthosOutput(l *lab, f flow, t target, s setting) string {
	connection := fmt.Sprintf("driver: postgres\ndsn: %q\nmax_in_flight: %d\nconn_max_idle: %d\n", l.dsn, s.writers, s.writers)
	if s.output == outputInsert {
		mapping := "root = [" + strings.Join(f.row(), ", ") + "]"
		if f.source == flowScan {
			mapping = "let row = this.value.parse_json()\n" + mapping
		}
		text := connection + "table: " + t.table + "\ncolumns: [" + strings.Join(columns(), ", ") + "]\nargs_mapping: |\n" + indent(mapping) +
			fmt.Sprintf("\nbatching: {count: %d, period: %s}", s.batch, s.period)
		if t.upsert {
			text += "\nsuffix: " + onConflict(t)
		}
		return "sql_insert:\n" + indent(text)
	}
	query := fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM json_to_recordset($1::json) AS r(id bigint, name text, email text, bio text, visits bigint, seen timestamptz) ORDER BY id %s",
		t.table, strings.Join(columns(), ", "), strings.Join(columns(), ", "), onConflict(t))
	text := connection + "query: " + query + "\nargs_mapping: root = [content().string()]\n" +
		fmt.Sprintf("batching:\n  count: %d\n  period: %s\n  processors:\n", s.batch, s.period)
	switch f.source {
	case flowStream:
		text += "    - mapping: |\n        root = @\n        root.id = content().string()\n"
	case flowScan:
		text += "    - mapping: root = this.value.parse_json()\n"
	case flowList: // entries are objects already
	}
	return "sql_raw:\n" + indent(text+"    - archive: {format: json_array}")
}

// indent moves every line two places to the right.
func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  ")
}
