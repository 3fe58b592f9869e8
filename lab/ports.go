package lab

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// freePort finds a loopback port that nobody listens on. It stays below the range from which systems take the ports of outgoing
// connections, so that a server which is down for a while finds its port free when it comes back.
func freePort() (int, error) {
	const low, high = 20000, 32000
	var last error
	for range 100 {
		port := low + rand.IntN(high-low)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			last = err
			continue
		}
		l.Close()
		return port, nil
	}
	return 0, fmt.Errorf("no free port on 127.0.0.1 between %d and %d: %w", low, high, last)
}
