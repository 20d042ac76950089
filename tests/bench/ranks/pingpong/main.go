// Pingpong sends bytes over TCP there and back, with nothing around them: the
// limit that `make bench-net` shows beside an update's way.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"time"
)

func main() {
	listen := flag.String("listen", "", "answer at this `address`")
	connect := flag.String("connect", "", "ask at this `address`, and print the seconds of a round trip")
	bytes := flag.Int("bytes", 64, "how many go each way; below 2^32")
	times := flag.Int("times", 1000, "round trips")
	flag.Parse()
	if *listen != "" {
		log.Fatal(answer(*listen))
	}
	taken, err := ask(*connect, *bytes, *times)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(taken.Seconds() / float64(*times))
}

// answer sends back whatever comes.
func answer(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Println("listens")
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			buf := make([]byte, 64<<10)
			for {
				n, err := c.Read(buf)
				if err != nil {
					return
				}
				if _, err := c.Write(buf[:n]); err != nil {
					return
				}
			}
		}()
	}
}

func ask(address string, bytes, times int) (time.Duration, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	buf := make([]byte, bytes)
	start := time.Now()
	for range times {
		if _, err := c.Write(buf); err != nil {
			return 0, err
		}
		if _, err := io.ReadFull(c, buf); err != nil {
			return 0, err
		}
	}
	return time.Since(start), nil
}
