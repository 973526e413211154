"""For every test: one thread of BLAS, as in the proxy and the replay."""

from threadpoolctl import threadpool_limits

threadpool_limits(limits=1, user_api="blas")
