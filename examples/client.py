# python3 client.py 'make test'      runs one command through a toold daemon (pip install toold-client)
import sys
import toold_client

sys.exit(toold_client.main(sys.argv[1] if len(sys.argv) > 1 else "echo hello from toold"))
