package config

import (
	"slices"
	"strings"

	"baton/internal/flush/source/spec"
)

// structure returns the rules of the schema that go beyond the type of one setting: patterns, counts, and settings that depend on each
// other. The files of TestSchemaRefusesWhatIsWronglyMade and TestSchemaTakesWhatReadTakes check that Read has the same rules.
func structure() map[string]keywords {
	url := `^$|\$\{|^(rediss?|valkeys?)://[^/?#]+(/[0-9]*)?$|^unix:///[^?#]+(\?db=[0-9]+)?$`
	address := `\$\{|^[^/@\s]+:[0-9]+$`
	absolute := keywords{"pattern": `^$|^/|^\$\{`}
	webURL := keywords{"pattern": `\$\{|^https?://[^/]`}
	name := keywords{"pattern": jobName.String()}
	once := func(s keywords) keywords { s["uniqueItems"] = true; return s }
	all := map[string]keywords{
		"node.id":                  {"pattern": "^$|" + nodeID.String()},
		"redis":                    {"not": anyOf(both("url", "sentinel"), both("url", "cluster"), both("sentinel", "cluster"), both("quorum", "sentinel"), both("quorum", "cluster"), both("password", "password_file"))},
		"redis.url":                {"pattern": url},
		"redis.quorum":             once(keywords{"minItems": 3}),
		"redis.quorum[]":           {"pattern": url},
		"redis.cluster":            once(keywords{"minItems": 1}),
		"redis.cluster[]":          {"pattern": address},
		"redis.sentinel":           {"not": both("password", "password_file")},
		"redis.sentinel.addresses": once(keywords{"minItems": 1, "type": "array"}),
		"redis.sentinel.addresses[]": {
			"pattern": address,
		},
		"redis.tls":         {"dependentRequired": keywords{"cert_file": []any{"key_file"}, "key_file": []any{"cert_file"}}},
		"election":          {"not": keywords{"properties": keywords{"acquire": is(AcquireSetNX), "lock_format": is(FormatRedisson)}, "required": []any{"acquire", "lock_format"}}},
		"election.lock_key": lockKeyPattern(),
		"http.listen":       {"pattern": `^$|^off$|:[0-9]{1,5}$`},
		"http.hosts[]":      {"pattern": hostName.String()},
		"databases":         {"propertyNames": keywords{"pattern": databaseName.String()}},
		"databases.NAME":    {"oneOf": []any{both("dsn_file"), both("dsn")}},
		"stores":            {"propertyNames": keywords{"pattern": databaseName.String(), "not": keywords{"const": lockStore}}},
		"stores.NAME":       {"oneOf": []any{both("url"), both("sentinel"), both("cluster")}, "not": both("password", "password_file")},

		"notify[]":                           {"oneOf": []any{both("webhook"), both("command")}},
		"notify[].name":                      name,
		"notify[].on":                        once(keywords{}),
		"notify[].jobs":                      once(keywords{}),
		"notify[].webhook":                   {"oneOf": []any{both("url"), both("url_file")}},
		"notify[].webhook as text":           webURL,
		"notify[].webhook.url":               webURL,
		"notify[].webhook.url_file":          absolute,
		"notify[].webhook.token_file":        absolute,
		"jobs[].dead_mans_switch":            {"oneOf": []any{both("url"), both("url_file")}},
		"jobs[].dead_mans_switch as text":    webURL,
		"jobs[].dead_mans_switch.url":        webURL,
		"jobs[].dead_mans_switch.url_file":   absolute,
		"jobs[].dead_mans_switch.token_file": absolute,

		"jobs[]":          oneOfTwo(),
		"jobs[].name":     name,
		"jobs[].lock":     lockKeyPattern(),
		"jobs[].schedule": {"pattern": `^\s*(@(yearly|annually|monthly|weekly|daily|midnight|hourly|always)|@every\s+\S.*|[^@=\s]+(\s+[^=\s]+){4})\s*$`},
		"jobs[].flush.verify.schedule": {
			"pattern": `^\s*(@(yearly|annually|monthly|weekly|daily|midnight|hourly)|@every\s+\S.*|[^@=\s]+(\s+[^=\s]+){4})\s*$`,
		},
		"jobs[].flush.verify.sample": {"pattern": `^[0-9]+([.][0-9]+)?%$`},
		"jobs[].command":             {"minItems": 1},
		"jobs[].working_dir":         absolute,
		"jobs[].env":                 environment(),
		"jobs[].env_file":            absolute,
		"jobs[].secrets":             environment(),
		"jobs[].secrets.NAME": {
			"pattern": `^/|^\$\{`,
		},

		"jobs[].stdin":                {"pattern": `^$|^/`},
		"jobs[].log_file":             {"pattern": `^$|^/`},
		"jobs[].success_exit_codes":   once(keywords{}),
		"jobs[].umask":                {"pattern": "^$|" + octalMask.String()},
		"jobs[].nice":                 {"minimum": -20, "maximum": 19},
		"jobs[].limits.open_files":    {"minimum": leastFiles},
		"jobs[].limits.address_space": {"minimum": leastMemory},
		"jobs[].user":                 account(),
		"jobs[].group":                account(),

		"jobs[].flush":               {"required": []any{"from", "to"}, "type": "object", "allOf": flushOfEachType()},
		"jobs[].flush.from":          {"dependentRequired": keywords{"on_decrease": []any{"mode"}}},
		"jobs[].flush.from.start":    {"pattern": "^$|" + streamStart.String()},
		"jobs[].flush.to":            {"allOf": targetOfEachMode()},
		"jobs[].flush.to.key":        once(keywords{}),
		"jobs[].flush.to.dedupe_key": once(keywords{}),
		"jobs[].flush.columns.NAME": {"not": keywords{
			"properties": keywords{"type": among("integer", "float", "numeric", "text", "bytes", "boolean", "json", "uuid")}, "required": []any{"type", "format"},
		}},
	}
	for _, one := range []string{"url", "cluster", "cluster[]", "sentinel", "sentinel.addresses", "sentinel.addresses[]", "tls"} {
		all["stores.NAME."+one] = all["redis."+one]
	}
	return all
}

func lockKeyPattern() keywords {
	const plain = `[^{}\x00-\x20\x7f]`
	return keywords{"pattern": `^` + plain + `*(\{` + plain + `+\}` + plain + `*)?$`}
}

// oneOfTwo returns the rule that a job is either a flush or a command.
func oneOfTwo() keywords {
	ofCommands := keywords{}
	for _, key := range []string{
		"shell", "working_dir", "env", "env_file", "secrets", "stdin", "log_file", "success_exit_codes", "stop_signal",
		"umask", "nice", "limits", "user", "group",
	} {
		ofCommands[key] = []any{"command"}
	}
	return keywords{"oneOf": []any{both("flush"), both("command")}, "dependentRequired": ofCommands}
}

func account() keywords {
	return keywords{"pattern": "^$|" + accountName.String(), "not": keywords{"enum": []any{"root", "0", 0}}}
}

func environment() keywords {
	return keywords{"propertyNames": keywords{"pattern": envName.String(), "not": keywords{"pattern": "^BATON_"}}}
}

// flushOfEachType returns the rules that say which settings are allowed and required for each type of source.
func flushOfEachType() []any {
	var all []any
	for _, source := range spec.Types() {
		from, to, flush := keywords{}, keywords{}, keywords{}
		for _, o := range new(Flush).options() {
			if slices.Contains(spec.TypesTaking(o.path), source) {
				continue
			}
			switch path := strings.Split(o.path, "."); path[1] {
			case "verify":
				flush["verify"] = false
			case "from":
				from[path[2]] = false
			case "to":
				to[path[2]] = false
			}
		}
		ofFrom, ofTo := keywords{"properties": from}, keywords{"properties": to}
		of := slices.DeleteFunc(spec.Kinds(), func(k spec.Kind) bool { return k.Type != source })
		if !slices.ContainsFunc(of, func(k spec.Kind) bool { return !k.Indexed }) {
			ofFrom["required"] = []any{"changed"}
		}
		if source == spec.Scan {
			ofFrom["dependentRequired"] = keywords{"max_pct": []any{"vanished"}}
		}
		if of[0].Delivers == spec.States {
			ofTo["required"] = []any{"key"}
		}
		flush["from"], flush["to"] = ofFrom, ofTo
		then := keywords{"properties": flush}
		if of[0].Columns != "" {
			then["required"] = []any{"columns"}
		}
		all = append(all, keywords{"if": whereFrom("type", source), "then": then})
	}
	needs := keywords{"properties": keywords{"to": keywords{"required": []any{"generation"}}}}
	return append(all, keywords{"if": whereFrom("vanished", "delete"), "then": needs})
}

// whereFrom returns a schema that matches a flush whose section from contains the given key and word.
func whereFrom(key, word string) keywords {
	from := keywords{"properties": keywords{key: is(word)}, "required": []any{key}}
	return keywords{"properties": keywords{"from": from}, "required": []any{"from"}}
}

// targetOfEachMode returns the rules that say which settings a mode does not allow.
func targetOfEachMode() []any {
	when := func(mode keywords, no ...string) any {
		never := keywords{}
		for _, key := range no {
			never[key] = false
		}
		return keywords{"if": keywords{"properties": keywords{"mode": mode}, "required": []any{"mode"}}, "then": keywords{"properties": never}}
	}
	return []any{
		when(is(modeInsert), "key", "delete_when"),
		when(among(modeUpsert, modeReplace, modeDelete), "dedupe_key"),
		when(is(modeDelete), "delete_when"),
	}
}

func anyOf(s ...any) keywords { return keywords{"anyOf": s} }

// both returns a schema that matches if all keys are set.
func both(keys ...any) any { return keywords{"required": keys} }

func is(word string) keywords { return keywords{"const": word} }

func among(words ...any) keywords { return keywords{"enum": words} }
