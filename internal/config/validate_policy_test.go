package config

import (
	"strings"
	"testing"
)

// nightly returns a valid command job with additional lines. The key name: is in line 3.
func nightly(extra ...string) string {
	text := "node: {id: n}\njobs:\n  - name: a\n    schedule: \"@every 1h\"\n    command: [/bin/report]\n"
	for _, line := range extra {
		text += "    " + line + "\n"
	}
	return text
}

// always returns a valid job that runs all the time.
func always(extra ...string) string {
	return strings.Replace(nightly(extra...), "@every 1h", "@always", 1)
}

// another appends a second job, at line 6.
func another(first string, extra ...string) string {
	first += "  - name: b\n    schedule: \"@every 1h\"\n    command: [x]\n"
	for _, line := range extra {
		first += "    " + line + "\n"
	}
	return first
}

// told appends a notification at line 7.
func told(settings string) string { return nightly() + "notify:\n  - {name: ops, " + settings + "}\n" }

const notWithAlways = "not with @always: it has no slots, runs for as long as its node leads, and is started again whenever it ends; remove it"

func TestPolicyThatCannotHoldIsReportedAtItsPlace(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"overlap", nightly("overlap: queue"), `6:5: jobs[0].overlap: "queue" is not known here; write forbid, queue_one, replace or allow`},
		{"default overlap", "defaults: {overlap: none}\n", `1:12: defaults.overlap: "none" is not known here; write forbid, queue_one, replace or allow`},
		{"a bad default is told once", "defaults: {overlap: none}\n" + another(nightly()), `1:12: defaults.overlap: "none" is not known here; write forbid, queue_one, replace or allow`},
		{"on lost", nightly("on_lost: retry"), `6:5: jobs[0].on_lost: "retry" is not known here; write skip or rerun`},
		{"several runs lost", nightly("overlap: allow", "on_lost: rerun"), "7:5: jobs[0].on_lost: with overlap: allow several runs may be lost at a time, and only one could be run again; write on_lost: skip, or another overlap"},
		{"one of several", nightly("overlap: allow", "max_overlap: 1"), "7:5: jobs[0].max_overlap: 1: must be 2 or more; leave it out for any number, or set overlap: forbid for one"},
		{"none of several", nightly("overlap: allow", "max_overlap: 0"), "7:5: jobs[0].max_overlap: 0: must be 2 or more; leave the key out for the default"},
		{"fewer than none", "defaults: {max_overlap: -1}\n" + another(nightly()), "1:12: defaults.max_overlap: -1: must be 2 or more; leave it out for any number, or set overlap: forbid for one"},
		{"a bound of what forbids", nightly("max_overlap: 2"), "6:5: jobs[0].max_overlap: only with overlap: allow, because other values allow one run at a time; remove it, or set overlap: allow"},
		{"a bound in words", nightly("overlap: allow", "max_overlap: two"), "7:5: jobs[0].max_overlap: write a whole number here"},
		{"timeout of two years", nightly("timeout: 17520h"), "6:5: jobs[0].timeout: 17520h is more than a year"},
		{"grace of two years", "defaults: {grace: 17520h}\n" + nightly(), "1:12: defaults.grace: 17520h is more than a year"},
		{"deadline of two years", nightly("starting_deadline: 17520h"), "6:5: jobs[0].starting_deadline: 17520h is more than a year"},
		{"negative timeout", nightly("timeout: -1m"), `6:5: jobs[0].timeout: bad duration "-1m": must be more than 0; leave it out for the default`},
		{"number without a unit", nightly("grace: 30"), `6:5: jobs[0].grace: bad duration "30": write a number and a unit, for example 500ms, 10s or 1m30s`},
		{"jitter beyond the deadline", nightly("jitter: 5m", "starting_deadline: 5m"), "7:5: jobs[0].starting_deadline: 5m is not more than the jitter, 5m, so a start may come too late to be made; raise it, or lower jitter"},
		{"late within the jitter", nightly("jitter: 5m", "late_after: 1m"), "7:5: jobs[0].late_after: 1m is not more than the jitter, 5m, so the job may be late before it starts; raise it, or lower jitter"},
		{"jitter beyond the next slot", nightly("jitter: 1h"), "6:5: jobs[0].jitter: 1h is not less than the time between two slots, 1h; lower it"},
		{"default jitter beyond the next slot", "defaults: {jitter: 2h}\n" + nightly(), "5:5: jobs[0].schedule: two slots are 1h apart, and the jitter of defaults, 2h, is not less; give this job a smaller jitter of its own"},
		{"zone of an interval", nightly("time_zone: Asia/Shanghai"), `6:5: jobs[0].time_zone: @every counts from 1970 in UTC, whatever the zone; for fixed times of the day write a cron schedule, such as "0 */6 * * *", or remove it`},

		{"retries without a limit", nightly("retry: {delay: 1s}"), "6:5: jobs[0].retry: there is a delay and no limit, so no run is tried again; set limit, or remove retry"},
		{"no retries", nightly("retry: {limit: 0}"), "6:13: jobs[0].retry.limit: 0: must be 1 or more; leave the key out for the default"},
		{"negative retries", nightly("retry: {limit: -1}"), "6:13: jobs[0].retry.limit: -1: must be from 1 to 1000; leave it out for no retry"},
		{"endless retries", "defaults: {retry: {limit: 1001}}\n" + nightly(), "1:20: defaults.retry.limit: 1001: must be from 1 to 1000; leave it out for no retry"},
		{"delay beyond its bound", nightly("retry: {limit: 3, delay: 2m, max_delay: 1m}"), "6:23: jobs[0].retry.delay: 2m is more than max_delay, 1m"},
		{"retry after the next slot", nightly("retry: {limit: 3, delay: 1h}"), "6:5: jobs[0].retry: the first retry is after 1h, but the next slot comes after 1h and takes its place; lower delay, or remove retry"},
		{"retry of a year", "defaults: {retry: {limit: 3, delay: 17520h}}\n", "1:12: defaults.retry: a delay of more than a year"},

		{"timeout of always", always("timeout: 10m"), "6:5: jobs[0].timeout: " + notWithAlways},
		{"slots of always", always("catch_up: none", "starting_deadline: 1m", "jitter: 1s", "late_after: 5m"),
			"6:5: jobs[0].catch_up: " + notWithAlways + "\n7:5: jobs[0].starting_deadline: " + notWithAlways + "\n8:5: jobs[0].jitter: " + notWithAlways + "\n9:5: jobs[0].late_after: " + notWithAlways},
		{"ends of always", always("retry: {limit: 1}", "on_lost: rerun", "max_overlap: 2"),
			"6:5: jobs[0].retry: " + notWithAlways + "\n7:5: jobs[0].on_lost: " + notWithAlways + "\n8:5: jobs[0].max_overlap: " + notWithAlways},
		{"dead man's switch of always", always("dead_mans_switch: https://h/x"), "6:5: jobs[0].dead_mans_switch: not with @always: it gets a request after each success, and this run does not end; remove it"},

		{"runs at a time", "max_concurrent_jobs: -1\n", "1:1: max_concurrent_jobs: -1: must be 1 or more; leave it out for any number"},
		{"no run at a time", "max_concurrent_jobs: 0\n", "1:1: max_concurrent_jobs: 0: must be 1 or more; leave the key out for the default"},
		{"endless history", "history: {keep: 1000000, max_age: 900000h}\n", "1:11: history.keep: 1000000: must be from 1 to 10000 entries of each job\n1:26: history.max_age: 900000h is more than ten years"},
		{"no history", "history: {keep: -1}\n", "1:11: history.keep: -1: must be from 1 to 10000 entries of each job"},
	} {
		t.Run(tc.name, func(t *testing.T) { wantProblems(t, tc.text, tc.want) })
	}
}

func TestCommandThatCannotRunIsReportedAtItsPlace(t *testing.T) {
	command := func(line string, extra ...string) string {
		return strings.Replace(nightly(extra...), "command: [/bin/report]", line, 1)
	}
	onlyCommands := "only for a job with a command; remove it"
	for _, tc := range []struct{ name, text, want string }{
		{"neither", command("timeout: 1s"), "3:5: jobs[0].flush: required: flush, which moves data into a table, or command, which runs a program"},
		{"empty", command("command: []"), "5:5: jobs[0].command: the command is empty; write a program and its arguments: [/usr/bin/report, --yesterday]"},
		{"no program", command(`command: ["", x]`), "5:5: jobs[0].command: the program has no name"},
		{"a flush too", job("    command: [x]\n"), "9:5: jobs[0].command: the job has a flush, too; write two jobs, one for each"},
		{"one text", command(`command: "report --yesterday"`), "5:5: jobs[0].command: the command is one text with spaces or shell characters, so the whole text would be the program's name; write a list, [program, argument], or add shell: true"},
		{"a list for a shell", command("command: [report, x]", "shell: true"), "5:5: jobs[0].command: with shell: true the command is one text for /bin/sh -c; for a list of arguments remove shell"},
		{"relative", command("command: [bin/report]"), `5:5: jobs[0].command: "bin/report" depends on where the daemon was started; write an absolute path, or a name alone, which is searched for in PATH`},
		{"NUL in an argument", command(`command: [report, "a\0b"]`), "5:23: jobs[0].command[1]: the text has a NUL character"},
		{"working directory", nightly("working_dir: data"), `6:5: jobs[0].working_dir: "data" depends on where the daemon was started; write an absolute path`},
		{"environment file", nightly("env_file: report.env"), `6:5: jobs[0].env_file: "report.env" depends on where the daemon was started; write an absolute path`},
		{"secret's file", nightly("secrets: {TOKEN: token}"), `6:15: jobs[0].secrets.TOKEN: "token" depends on where the daemon was started; write an absolute path`},
		{"secret without a file", nightly(`secrets: {TOKEN: ""}`), "6:15: jobs[0].secrets.TOKEN: write the path of the file that holds the secret"},
		{"secret twice", nightly("env: {TOKEN: x}", "secrets: {TOKEN: /x}"), "7:15: jobs[0].secrets.TOKEN: it is under env too; keep one of them"},
		{"name of a variable", nightly("env: {MY-VAR: x}"), "6:11: jobs[0].env.MY-VAR: use letters, digits and underscores in the name"},
		{"a variable of ours", nightly("env: {BATON_EPOCH: x}"), "6:11: jobs[0].env.BATON_EPOCH: names that begin with BATON_ are reserved: baton sets these variables for the command"},
		{"a variable of a variable", nightly(`env: {URL: "http://${HOST}/"}`), "6:11: jobs[0].env.URL: ${NAME} is not replaced here; the command has the daemon's own environment anyway: write the value out, or put it into env_file"},
		{"NUL in a variable", nightly(`env: {A: "a\0b"}`), "6:11: jobs[0].env.A: the text has a NUL character"},
		{"input", nightly("stdin: in.csv"), `6:5: jobs[0].stdin: "in.csv" depends on where the daemon was started; write an absolute path`},
		{"log file", nightly("log_file: out.log"), `6:5: jobs[0].log_file: "out.log" depends on where the daemon was started; write an absolute path`},
		{"an exit code", nightly("success_exit_codes: [3, 256, -1]"), "6:29: jobs[0].success_exit_codes[1]: 256: must be from 0 to 255\n6:34: jobs[0].success_exit_codes[2]: -1: must be from 0 to 255"},
		{"an exit code twice", nightly("success_exit_codes: [3, 3]"), "6:29: jobs[0].success_exit_codes[1]: 3 is there twice; remove one of them"},
		{"no signal", nightly("stop_signal: TERM"), `6:5: jobs[0].stop_signal: "TERM" is not known here; write SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2 or SIGWINCH`},
		{"a mask in decimal", nightly("umask: 18"), `6:5: jobs[0].umask: "18": write three octal digits, for example 027`},
		{"a mask of four digits", nightly(`umask: "7777"`), `6:5: jobs[0].umask: "7777": write three octal digits, for example 027`},
		{"too nice", nightly("nice: 20"), "6:5: jobs[0].nice: 20: must be from -20 (runs first) to 19 (runs last)"},
		{"not nice", nightly("nice: -21"), "6:5: jobs[0].nice: -21: must be from -20 (runs first) to 19 (runs last)"},
		{"few files", nightly("limits: {open_files: 3}"), "6:14: jobs[0].limits.open_files: 3: must be 8 or more; with fewer files a program cannot load its libraries"},
		{"no processes", nightly("limits: {processes: -1}"), "6:14: jobs[0].limits.processes: -1: must be 1 or more"},
		{"memory in MiB", nightly("limits: {address_space: 512}"), "6:14: jobs[0].limits.address_space: 512: the limit is in bytes and must be 1048576 or more, because with less memory no program starts"},
		{"an unknown limit", nightly("limits: {memory: 512}"), "6:14: jobs[0].limits.memory: unknown key; choose one of open_files, processes, address_space, file_size, cpu_time"},
		{"a part of a second", nightly("limits: {cpu_time: 1500ms}"), "6:14: jobs[0].limits.cpu_time: 1.5s: must be whole seconds, for example 30s"},
		{"root", nightly("user: root"), "6:5: jobs[0].user: a daemon that does not run as root cannot run a command as root; remove it, " +
			"and let a separate daemon, with User=root, run the commands of root"},
		{"root's group by number", nightly("group: 0"), "6:5: jobs[0].group: a daemon that does not run as root cannot run a command as root; remove it, " +
			"and let a separate daemon, with User=root, run the commands of root"},
		{"no name of a user", nightly(`user: "a b"`), `6:5: jobs[0].user: "a b": write a name that this host has, or its number`},
		{"a flush with surroundings", job("    stdin: /x\n    log_file: /x\n    success_exit_codes: [1]\n    stop_signal: SIGINT\n    umask: 027\n    nice: 1\n    limits: {open_files: 9}\n    user: a\n    group: a\n"),
			"9:5: jobs[0].stdin: " + onlyCommands + "\n10:5: jobs[0].log_file: " + onlyCommands + "\n11:5: jobs[0].success_exit_codes: " + onlyCommands +
				"\n12:5: jobs[0].stop_signal: " + onlyCommands + "\n13:5: jobs[0].umask: " + onlyCommands + "\n14:5: jobs[0].nice: " + onlyCommands +
				"\n15:5: jobs[0].limits: " + onlyCommands + "\n16:5: jobs[0].user: " + onlyCommands + "\n17:5: jobs[0].group: " + onlyCommands},
		{"a flush with a shell", job("    shell: true\n    env: {A: b}\n    grace: 1s\n    working_dir: /\n    env_file: /x\n    secrets: {A: /x}\n"),
			"9:5: jobs[0].shell: " + onlyCommands + "\n10:5: jobs[0].env: " + onlyCommands + "\n11:5: jobs[0].grace: " + onlyCommands +
				"\n12:5: jobs[0].working_dir: " + onlyCommands + "\n13:5: jobs[0].env_file: " + onlyCommands + "\n14:5: jobs[0].secrets: " + onlyCommands},
		{"two flushes at a time", job("    overlap: allow\n"), "9:5: jobs[0].overlap: a flush cannot run twice at a time; write forbid, queue_one or replace"},
	} {
		t.Run(tc.name, func(t *testing.T) { wantProblems(t, tc.text, tc.want) })
	}
}

func TestLockThatIsAnotherKeyIsReported(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"blanks", nightly("lock: a b"), `6:5: jobs[0].lock: "a b" has a space or a control character in it`},
		{"braces", nightly("lock: a}b"), `6:5: jobs[0].lock: "a}b": braces must be one {tag}, for example {shop}:leader`},
		{"a bad lock of all jobs is told once", "election: {lock_key: a b}\n" + another(nightly()), `1:12: election.lock_key: "a b" has a space or a control character in it`},
		{"the same names beside it", nightly(`lock: "{baton}"`), `6:5: jobs[0].lock: the keys that belong to this lock have the same names as those of lock "baton" in election.lock_key; write the same lock in both places, or choose another name`},
		{"beside the election's", nightly(`lock: "{baton}:nodes"`), `6:5: jobs[0].lock: "{baton}:nodes" is a key that belongs to lock "baton" in election.lock_key; choose another name`},
		{"of a job of the election", nightly(`lock: "{baton}:job:a:runs"`), `6:5: jobs[0].lock: "{baton}:job:a:runs" is a key that belongs to lock "baton" in election.lock_key; choose another name`},
		{"the election's beside it", "election: {lock_key: \"{x}:term\"}\n" + nightly("lock: x"), `7:5: jobs[0].lock: lock "{x}:term" in election.lock_key is a key that belongs to this lock; choose another name`},
		{"beside another job's", another(nightly("lock: x"), `lock: "{x}:events"`), `10:5: jobs[1].lock: "{x}:events" is a key that belongs to lock "x" in jobs[0].lock; choose another name`},
		{"flushed", spoil("key: \"u:<id>\", changed: c", "key: \"u:<id>\", changed: baton"), `7:43: jobs[0].flush.from.changed: this key is the lock of election.lock_key, "baton", or belongs to that lock; rename one of the two`},
		{"flushed counters", strings.Replace(counters("{id: $field, n: $value}", "key: x"), "    flush:", "    lock: x\n    flush:", 1), `8:30: jobs[0].flush.from.key: this key is the lock of jobs[0].lock, "x", or belongs to that lock; rename one of the two`},
		{"its history flushed", counters("{id: $field, n: $value}", `key: "{baton}:job:a"`), `7:30: jobs[0].flush.from.key: this key is the lock of election.lock_key, "baton", or belongs to that lock; rename one of the two`},
	} {
		t.Run(tc.name, func(t *testing.T) { wantProblems(t, tc.text, tc.want) })
	}
	for name, text := range map[string]string{
		"of two jobs":         another(nightly("lock: x"), "lock: x"),
		"the election's":      nightly("lock: baton"),
		"with the same tag":   "election: {lock_key: \"{x}:leader\"}\n" + nightly(`lock: "{x}:reports"`),
		"no key of its own":   nightly(`lock: "{baton}:reports"`),
		"the tag of a source": counters("{id: $field, n: $value}", `key: "{baton}:views"`),
	} {
		if _, err := read(t, text, nil, nil); err != nil {
			t.Errorf("lock %s: %v", name, err)
		}
	}
}

func TestNotificationThatWouldNotArriveIsReported(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"nobody", told("on: [failed]"), "7:6: notify[0]: needs webhook or command"},
		{"a format that nobody knows", told("webhook: https://h/x, format: jsn"), `7:39: notify[0].format: "jsn" is not known here; did you mean json?`},
		{"a format of a command", told("command: [sh], format: json"), "7:32: notify[0].format: only for webhook, because a command gets the event as JSON; remove it"},
		{"a token of Slack", told("webhook: {url: https://h/x, token_file: /t}, format: slack"), "7:45: notify[0].webhook.token_file: slack accepts no token, because its address is the secret; remove token_file"},
		{"two", told("webhook: https://h/x, command: [x]"), "7:39: notify[0].command: webhook is set, too; write two targets, one for each"},
		{"event", told("on: [fail], command: [x]"), `7:22: notify[0].on[0]: "fail" is not known here; did you mean failed?`},
		{"event twice", told("on: [failed, failed], command: [x]"), `7:30: notify[0].on[1]: "failed": write each event once`},
		{"job", told("jobs: [c], command: [x]"), `7:24: notify[0].jobs[0]: there is no job "c"; choose one of a`},
		{"job twice", told("jobs: [a, a], command: [x]"), `7:27: notify[0].jobs[1]: "a": write each job once`},
		{"no jobs at all", "notify:\n  - {name: ops, jobs: [c], command: [x]}\n", `2:24: notify[0].jobs[0]: there is no job "c", nor any other`},
		{"never late", told("on: [failed, late], command: [x]"), "7:30: notify[0].on[1]: no job has late_after, so no job is ever late; set it, or remove late"},
		{"no letters", told("on: [failed, dead_letters], command: [x]"), "7:30: notify[0].on[1]: no job is a flush, so there are no dead letters; remove dead_letters"},
		{"late is another", another(nightly(), "late_after: 1h") + "notify:\n  - {name: ops, on: [late], jobs: [a], command: [x]}\n", "11:22: notify[0].on[0]: no job has late_after, so no job is ever late; set it, or remove late"},
		{"no name", nightly() + "notify:\n  - command: [x]\n", "7:5: notify[0].name: required; for example page-views"},
		{"name twice", told("command: [x]") + "  - {name: ops, command: [x]}\n", `8:6: notify[1].name: "ops" is the name of notify[0] too`},
		{"program", told("command: [bin/tell]"), `7:17: notify[0].command: "bin/tell" depends on where the daemon was started; write an absolute path, or a name alone, which is searched for in PATH`},
		{"a shell's text", told("command: tell me"), "7:17: notify[0].command: the command is one text with spaces or shell characters, so the whole text would be the program's name; write a list, [program, argument]"},
		{"an attempt that outlasts all", told("command: [x], timeout: 2h"), "7:31: notify[0].timeout: 2h is more than give_up_after, 1h"},
		{"a delivery of years", told("command: [x], give_up_after: 17520h"), "7:31: notify[0].give_up_after: 17520h is more than a year"},

		{"no URL", told("webhook: {token_file: /x}"), "7:17: notify[0].webhook: needs url or url_file"},
		{"two URLs", told("webhook: {url: https://h, url_file: /x}"), "7:43: notify[0].webhook.url_file: url is set too; keep one of them"},
		{"no URL but a host", told("webhook: hooks.example.com/x"), "7:17: notify[0].webhook: write a URL: https://host/path"},
		{"mail", told("webhook: mailto:ops@example.com"), "7:17: notify[0].webhook: write a URL: https://host/path"},
		{"relative files", told("webhook: {url_file: x, token_file: y}"), `7:27: notify[0].webhook.url_file: "x" depends on where the daemon was started; write an absolute path` +
			"\nbaton.yaml:7:40: notify[0].webhook.token_file: \"y\" depends on where the daemon was started; write an absolute path"},
		{"dead man's switch", nightly("dead_mans_switch: ping.example.com"), "6:5: jobs[0].dead_mans_switch: write a URL: https://host/path"},
		{"one switch for two jobs", another(nightly("dead_mans_switch: https://h/x"), "dead_mans_switch: {url: https://h/x}"), "10:5: jobs[1].dead_mans_switch: the same address as that of jobs[0], whose successes would hide that this job has none; give this job its own address"},
	} {
		t.Run(tc.name, func(t *testing.T) { wantProblems(t, tc.text, strings.ReplaceAll(tc.want, "\nbaton.yaml:", "\n")) })
	}
}

// TestPolicyThatHoldsIsLetThrough checks valid settings that look similar to mistakes.
func TestPolicyThatHoldsIsLetThrough(t *testing.T) {
	for name, text := range map[string]string{
		"a delay for the jobs that retry":     "defaults: {retry: {delay: 1s}}\n" + another(nightly("retry: {limit: 3}")),
		"retries for all, also the frequent":  "defaults: {retry: {limit: 3, delay: 2h}}\n" + nightly(),
		"defaults that @always has no use of": "defaults: {timeout: 5m, jitter: 2s, retry: {limit: 1}, late_after: 1h, catch_up: all}\n" + always(),
		"a bound for the jobs that overlap":   "defaults: {max_overlap: 2}\n" + another(nightly(), "overlap: allow"),
		"a bound of a job":                    nightly("overlap: allow", "max_overlap: 2"),
		"the zone of all jobs":                "defaults: {time_zone: Asia/Shanghai}\n" + nightly(),
		"a late job":                          nightly("late_after: 30m") + "notify:\n  - {name: ops, on: [late], command: [x]}\n",
		"a path below the working directory":  "jobs:\n  - {name: a, schedule: \"@daily\", command: [./x], working_dir: /data}\n",
		"a shell":                             "jobs:\n  - {name: a, schedule: \"@daily\", command: \"./x && echo $HOME\", shell: true}\n",
		"a program without arguments":         "jobs:\n  - {name: a, schedule: \"@daily\", command: /bin/x}\n",
		"two switches":                        another(nightly("dead_mans_switch: https://h/x"), "dead_mans_switch: https://h/y"),
		"a variable with a dollar sign":       nightly("env: {PRICE: $5, PATTERN: 'x$'}"),
	} {
		if _, err := read(t, text, nil, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
