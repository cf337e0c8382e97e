package crash_test

const daemonEnv = "X_D"

func runDaemon(string) int { return 0 }
