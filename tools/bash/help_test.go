package bash

// environment is what commands of the tests see.
func environment() []string {
	return []string{"HOME=/home/u", "PATH=/usr/bin:/bin", "LANG=C.UTF-8", "USER=u"}
}
