package config

import (
	"strings"
	"testing"
)

// TestSchemaRefusesWhatIsWronglyMade checks that Read and the schema reject files with one structural mistake.
func TestSchemaRefusesWhatIsWronglyMade(t *testing.T) {
	c := newChecker(t, Schema)
	const databases = "databases: {main: {driver: sqlite, dsn: /var/lib/baton/x.db}}\n"
	const counters = databases + "jobs:\n  - name: views\n    schedule: \"@every 5s\"\n    flush:\n      from: {type: counters, key: views}\n" +
		"      to: {database: main, table: articles, key: [id]}\n      columns: {id: $field, views: $value}\n"
	const command = "jobs:\n  - name: report\n    schedule: \"@daily\"\n    command: [/bin/true]\n"
	files := []string{counters, command} // valid files; swapped replaces one text in them
	swapped := func(old, wrong string) string {
		for _, base := range []string{counters, command} {
			if strings.Contains(base, old) {
				return strings.Replace(base, old, wrong, 1)
			}
		}
		t.Fatalf("%q is nowhere", old)
		return ""
	}
	commandWith := func(line string) string { return swapped("command: [/bin/true]", "command: [/bin/true]\n    "+line) }
	files = append(files, "redis: {cluster: [\"a:1\"], tls: {}}", "redis: {url: redis://a:1, quorum: [\"redis://a:1\", \"redis://b:1\", \"redis://c:1\"]}", "redis: {sentinel: {master: m, addresses: [\"a:1\"]}}")
	for _, good := range files {
		refused(t, c, good, false)
	}
	wrong := []string{
		// These have an unknown key, a key in the wrong place, or a value of another type.
		"nodes: {id: a}", "node: {ids: a}", "node: [a]", "node: a", "redis: redis://127.0.0.1:6379", "jobs: {report: {schedule: \"@daily\"}}",
		"node: {priority: high}", "node: {candidate: maybe}", "http: {hosts: baton.example.com}", "databases: [main]",
		"election: {ttl: 10}", "election: {ttl: 10 s}", "election: {ttl: 0s}", "election: {ttl: -1s}", "election: {drain: [2s]}",
		"redis: {sentinel: {master: m, addresses: [\"10.0.0.1:26379\"], ttl: 1s}}",
		// These have invalid texts.
		"node: {id: \"db 1\"}", "election: {lock_key: \"a b\"}", "election: {lock_key: \"a{b\"}", "redis: {url: http://127.0.0.1:6379}", "redis: {url: redis://127.0.0.1:6379/x}",
		"redis: {cluster: [10.0.0.1]}", "redis: {cluster: [\"redis://10.0.0.1:7000\"]}", "http: {listen: \"9747\"}", "http: {hosts: [\"https://baton.example.com\"]}",
		"databases: {Main: {driver: sqlite, dsn: x.db}}", swapped("name: views", "name: Views"), swapped("name: report", "name: \"a report\""),
		// These have invalid words or numbers.
		"log: {level: loud}", "log: {format: xml}", "election: {acquire: redlock}", "election: {lock_format: hash}", "election: {wait_replicas: -1}",
		"node: {priority: 1001}", "node: {priority: -1}", "history: {keep: 0}", "history: {keep: 10001}", "max_concurrent_jobs: 0", "redis: {database: -1}",
		"defaults: {overlap: maybe}", "defaults: {max_overlap: 1}", "defaults: {max_overlap: 0}", "defaults: {catch_up: some}", "defaults: {on_lost: forget}", "defaults: {retry: {limit: 1001}}",
		"databases: {main: {driver: oracle, dsn: x}}", "databases: {main: {driver: postgres, dsn: x, pooler: session}}", swapped("type: counters", "type: gauges"), swapped("columns: {", "lanes: 17\n      columns: {"),
		swapped("columns: {", "batch_rows: 100001\n      columns: {"), swapped("columns: {", "dead_letters: {per_batch: 0}\n      columns: {"),
		swapped("key: [id]}", "key: [id], mode: merge}"), swapped("key: [id]}", "key: [id], schema: guess}"), swapped("views: $value", "views: {from: $value, op: max}"),
		swapped("views: $value", "views: {from: $value, type: money}"), swapped("views: $value", "views: {from: $value, empty: zero}"),
		"notify: [{name: ops, command: [/bin/true], on: [exploded]}]",
		// These lack a required key.
		"databases: {main: {dsn: x.db}}", "databases: {main: {driver: sqlite}}", "databases: {main:}", "redis: {sentinel: {master: m}}", "redis: {sentinel: {addresses: [\"10.0.0.1:26379\"]}}",
		"redis: {sentinel: {master: m, addresses: []}}", "redis: {cluster: []}", "redis: {quorum: [\"redis://a:1\", \"redis://b:1\"]}", "http: {tls: {cert_file: /etc/baton/tls.crt}}",
		swapped("- name: report\n    schedule", "- schedule"), swapped("    schedule: \"@daily\"\n", ""), swapped("    command: [/bin/true]\n", ""), swapped("[/bin/true]", "[]"),
		swapped("{type: counters, key: views}", "{type: counters}"), swapped("{type: counters, key: views}", "{key: views}"), swapped("{database: main, table: articles, key: [id]}", "{database: main, key: [id]}"),
		swapped("      to: {database: main, table: articles, key: [id]}\n", ""), swapped("      columns: {id: $field, views: $value}\n", ""), swapped("type: counters, key: views", "type: hashes, key: \"view:<id>\""),
		"notify: [{name: ops}]", "notify: [{command: [/bin/true]}]", "notify: [{name: ops, webhook: {token_file: /etc/baton/t}}]",
		// These have settings that exclude each other.
		"redis: {url: redis://a:1, cluster: [\"b:1\"]}", "redis: {url: redis://a:1, sentinel: {master: m, addresses: [\"b:1\"]}}", "redis: {cluster: [\"a:1\"], quorum: [\"redis://a:1\", \"redis://b:1\", \"redis://c:1\"]}",
		"redis: {password: a, password_file: /b}", "stores: {a: {}}", "stores: {A: {url: redis://a:1}}", "stores: {redis: {url: redis://a:1}}", "stores: {a: {url: redis://a:1, cluster: [\"b:1\"]}}", "stores: {a: {url: redis://a:1, quorum: [\"redis://a:1\"]}}", "redis: {cluster: [\"a:1\"], tls: {cert_file: /a}}", "election: {acquire: setnx, lock_format: redisson}",
		"databases: {main: {driver: sqlite, dsn: x, dsn_file: /y}}", "notify: [{name: ops, command: [/bin/true], webhook: https://a}]", "notify: [{name: ops, webhook: {url: https://a, url_file: /b}}]",
		"notify: [{name: ops, command: [/bin/true], on: [late, late]}]", "notify: [{name: ops, webhook: example.com}]",
		swapped("    flush:", "    command: [/bin/true]\n    flush:"), swapped("    flush:", "    working_dir: /srv\n    flush:"),
		swapped("type: counters,", "type: counters, on_gap: stop,"), swapped("type: counters,", "type: counters, max_pct: 5,"), swapped("type: counters,", "type: counters, on_decrease: stop,"),
		swapped("key: [id]}", "key: [id], generation: pass}"), swapped("key: [id]}", "key: [id], mode: insert}"), swapped("key: [id]}", "key: [id], dedupe_key: [id], mode: upsert}"), swapped("key: [id]}", "key: [id, id]}"),
		swapped("views: $value", "views: {from: $value, type: integer, format: unix}"),
		swapped("command: [/bin/true]", "command: [/bin/true]\n    working_dir: srv"), swapped("command: [/bin/true]", "command: [/bin/true]\n    env_file: report.env"),
		swapped("command: [/bin/true]", "command: [/bin/true]\n    env: {BATON_JOB: a}"), swapped("command: [/bin/true]", "command: [/bin/true]\n    env: {a-b: c}"),
		swapped("command: [/bin/true]", "command: [/bin/true]\n    secrets: {PASSWORD: password}"),
		commandWith("stdin: in"), commandWith("log_file: out"), commandWith("success_exit_codes: [256]"), commandWith("success_exit_codes: [1, 1]"), commandWith("success_exit_codes: 3"),
		commandWith("stop_signal: SIGKILL"), commandWith("umask: \"999\""), commandWith("umask: rwx"), commandWith("nice: 20"), commandWith("nice: -21"), commandWith("limits: {open_files: 7}"),
		commandWith("limits: {processes: 0}"), commandWith("limits: {address_space: 1}"), commandWith("limits: {file_size: -1}"), commandWith("limits: {cpu_time: 5}"), commandWith("limits: {core: 5}"),
		commandWith("user: root"), commandWith("user: \"0\""), commandWith("group: 0"), commandWith("user: \"a b\""), swapped("    flush:", "    user: a\n    flush:"),
		strings.Replace(swapped("{type: counters, key: views}", "{type: scan, key: \"view:<id>\", vanished: delete}"), "      columns: {id: $field, views: $value}\n", "", 1),
		strings.Replace(swapped("{type: counters, key: views}", "{type: stream, key: views, start: yesterday}"), "      columns: {id: $field, views: $value}\n", "", 1),
	}
	t.Logf("%d files", len(wrong))
	for _, text := range wrong {
		refused(t, c, text, true)
	}
	// Read does not check schedules, because the caller passes that check.
	for _, schedule := range []string{"", "5s", "@often", "@every", "* * * *", "* * * * * *", "TZ=UTC 0 0 * * *"} {
		if c.misfit(decoded(t, swapped(`"@daily"`, `"`+schedule+`"`))) == "" {
			t.Errorf("a schedule %q is taken", schedule)
		}
	}
}

// refused checks that Read and the schema agree about a file.
func refused(t *testing.T, c checker, text string, want bool) {
	t.Helper()
	config, err := parse("wrong.yaml", []byte(text), testSecrets)
	if err == nil {
		err = config.WithDefaults().Validate(Checks{})
	}
	why := c.misfit(decoded(t, text))
	if (err != nil) != want || (why != "") != want {
		t.Errorf("Read says %v, the schema says %q; want refused: %v\n%s", err, why, want, text)
	}
}
