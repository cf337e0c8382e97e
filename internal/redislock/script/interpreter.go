package script

// Interpreter compiles a script of the lock. The script then runs in this process, for a server that forbids scripts. Interpreter
// panics if the text does not compile, because that is an error of the program.
type Interpreter func(text string) Compiled

// Compiled runs a script. The function call stands for redis.call or, if protected is true, for redis.pcall. A reply has the types
// of redigo: int64, []byte, []any, nil. If the script refuses, the error is a redis.Error.
type Compiled func(keys, args []string, call func(protected bool, name string, args ...string) (any, error)) (any, error)
