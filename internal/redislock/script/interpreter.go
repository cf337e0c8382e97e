package script

// Interpreter compiles a script of the lock, so that it runs in this process: for a server that
// forbids scripts. A text that does not compile is an error of the program: it panics.
type Interpreter func(text string) Compiled

// Compiled runs a script. call stands for redis.call and, protected, for redis.pcall. A reply is
// what redigo would give: int64, []byte, []any, nil; a refusal by the script is a redis.Error.
type Compiled func(keys, args []string, call func(protected bool, name string, args ...string) (any, error)) (any, error)
