package source

import (
	"context"
	"embed"
	"fmt"
	"strconv"

	"github.com/gomodule/redigo/redis"

	"baton/internal/redisconn"
)

//go:embed *.lua
var luaFiles embed.FS

// loadScript loads the embedded script name.lua. The argument keys is the number of keys that the script gets.
func loadScript(name string, keys int) *redis.Script {
	return redis.NewScript(keys, redisconn.Lua(luaFiles, name))
}

// askTexts sends commands whose replies are texts. It returns an error if Redis refuses one of the commands.
func askTexts(
	ctx context.Context, c redisconn.Conn, nested bool, read func(*redisconn.Answers) error, commands ...redisconn.Command,
) error {
	q := questionOf(commands...)
	q.Nested = nested
	q.Read = func(a *redisconn.Answers) error {
		for _, r := range a.Replies {
			if r.Refusal != "" {
				return r.Refusal
			}
		}
		return read(a)
	}
	return c.Ask(ctx, q)
}

// questionOf combines several commands into one Question.
func questionOf(commands ...redisconn.Command) *redisconn.Question {
	return &redisconn.Question{Commands: len(commands), Write: func(buf []byte, i int) []byte {
		cmd := commands[i]
		buf = redisconn.AppendCommand(buf, 1+len(cmd.Args), cmd.Name)
		for _, arg := range cmd.Args {
			switch arg := arg.(type) {
			case string:
				buf = redisconn.AppendWord(buf, arg)
			case int64: // only commands on lists have numbers as arguments, and such a question has few commands
				buf = redisconn.AppendWord(buf, strconv.FormatInt(arg, 10))
			default:
				buf = redisconn.AppendWord(buf, fmt.Sprint(arg))
			}
		}
		return buf
	}}
}

// lastReply returns the last reply, with values of the types that redigo returns. The result begin is the index in a.Sizes of this reply's
// first text.
func lastReply(a *redisconn.Answers) (values []any, begin int) {
	begin = len(a.Sizes) - a.Replies[len(a.Replies)-1].Sizes
	at := 0
	for _, size := range a.Sizes[:begin] {
		at += max(0, size)
	}
	for _, size := range a.Sizes[begin:] {
		if size < 0 {
			values = append(values, nil)
			continue
		}
		values = append(values, append([]byte{}, a.All[at:at+size]...))
		at += size
	}
	return values, begin
}
