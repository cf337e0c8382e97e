package redisconn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gomodule/redigo/redis"

	"baton/internal/finding"
)

// access checks that baton's user may send each command. It sends the commands inside a transaction and then discards the
// transaction. Redis checks permissions before it queues a command, so it executes none of them. This check needs no further
// permission, and works in every version of Redis. ACL DRYRUN would need a permission that baton's user does not have.
func (x *examination) access(ctx context.Context, s *Store) {
	subject := x.subject
	defer func() { x.subject = subject }()
	for _, a := range x.options.Accesses {
		if x.subject = a.Subject; a.Subject == "" {
			x.subject = subject
		}
		lacks := lacking{}
		var err error
		for _, p := range a.Keys {
			if err = lacks.ask(ctx, s, p); err != nil {
				x.add(finding.UncheckedRedis, fmt.Sprintf("the permissions of its user could not be checked: %v", err),
					"a missing permission shows "+a.Shows, "run doctor again")
				break
			}
		}
		x.lacks(lacks, a.Consequence)
	}
}

// lacking lists the permissions that a user lacks. The field commands contains the forbidden commands. The field keys maps each
// forbidden key, pattern or channel to the command that was refused.
type lacking struct{ commands, keys map[string]string }

// ask tries the commands that go to one node. It records only errors about permissions.
func (l *lacking) ask(ctx context.Context, s *Store, p KeyCommands) error {
	holds := ""
	if p.ByType != nil {
		var err error
		holds, err = redis.String(s.Run(ctx, p.Key, func(c redis.Conn) (any, error) { return redis.DoContext(c, ctx, "TYPE", p.Key) }))
		if err != nil {
			holds = "" // the refusal is reported with the others
		}
	}
	c, err := s.Dial(ctx, p.Key)
	if err != nil {
		return err
	}
	defer c.Close() // drops a queued transaction
	c = Unrouted(c) // a row may be on another node, but only permissions matter
	if _, err := redis.DoContext(c, ctx, "MULTI"); err != nil {
		return err
	}
	if l.commands == nil {
		l.commands, l.keys = map[string]string{}, map[string]string{}
	}
	for _, command := range p.Sent(holds) {
		words := strings.Fields(command)
		args, touched := make([]any, len(words)-1), []string{}
		for i, word := range words[1:] {
			args[i] = word
			if name, ok := p.Names[word]; ok {
				args[i], touched = name, append(touched, cmp.Or(p.Patterns[word], Glob(name)))
			}
		}
		if words[0] == "MULTI" || words[0] == "EXEC" {
			continue // done just now, or ends the transaction
		}
		_, err := redis.DoContext(c, ctx, words[0], args...)
		var refusal redis.Error
		switch {
		case err == nil:
		case !errors.As(err, &refusal):
			return err
		case Code(refusal) == "NOPERM":
			l.note(string(refusal), words[0], touched)
		}
	}
	_, err = redis.DoContext(c, ctx, "DISCARD")
	return err
}

// note records a refusal. Either the user may not run the command at all, or the user may not use the keys of the command. If one of
// several keys is already known as forbidden, note records no other key of the command.
func (l *lacking) note(refusal, name string, touched []string) {
	if strings.Contains(refusal, "run the") { // the refusal names the command
		l.commands[strings.ToLower(name)] = ""
		return
	}
	if len(touched) > 1 && slices.ContainsFunc(touched, func(key string) bool { return l.keys[key] != "" }) {
		return
	}
	for _, key := range touched {
		l.keys[key] = name
	}
}

// lacks adds a finding about the missing permissions, with the ACL rules that grant them.
func (x *examination) lacks(l lacking, consequence string) {
	if len(l.commands)+len(l.keys) == 0 {
		return
	}
	var what, grants []string
	for _, name := range sortedNames(l.commands) {
		what = append(what, strings.ToUpper(name))
		grants = append(grants, "+"+name)
	}
	for _, key := range sortedNames(l.keys) {
		what = append(what, key)
		sign := "~"
		if name := l.keys[key]; name == "PUBLISH" || name == "SUBSCRIBE" {
			sign = "&"
		}
		grants = append(grants, sign+key)
	}
	x.add(finding.NoPermission, "the redis user may not use "+strings.Join(short(what), ", "), consequence,
		"ACL SETUSER … "+strings.Join(short(grants), " ")+" (docs/redis.md has the whole line)")
}

// short shortens a list of names for a message.
func short(names []string) []string {
	const most = 12
	if len(names) > most {
		return append(slices.Clone(names[:most]), fmt.Sprintf("and %d more", len(names)-most))
	}
	return names
}

func sortedNames(set map[string]string) []string {
	names := make([]string, 0, len(set))
	for name := range set {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
