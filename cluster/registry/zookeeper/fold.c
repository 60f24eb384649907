/* SPDX-License-Identifier: Apache-2.0 */
/* Converts the codes of the ZooKeeper library to errors. */
#include "cluster/registry/zookeeper/fold.h"

#include <spoke/error.h>

#include <zookeeper/zookeeper.h>

int spokei_zoo_fold(int code)
{
	switch (code) {
	case ZOK:
		return SPOKE_OK;
	case ZCONNECTIONLOSS:
	case ZSESSIONEXPIRED:
	case ZSESSIONMOVED:
	case ZCLOSING:
	case ZINVALIDSTATE:
	case ZRUNTIMEINCONSISTENCY:
		return SPOKE_ELOST;
	case ZOPERATIONTIMEOUT:
		return SPOKE_ETIMEOUT;
	case ZNONODE:
		return SPOKE_ENOENT;
	case ZNODEEXISTS:
		return SPOKE_EEXIST;
	case ZNOAUTH:
	case ZAUTHFAILED:
	case ZNOTREADONLY:
	case ZTHROTTLEDOP:
		return SPOKE_EREFUSED;
	case ZMARSHALLINGERROR:
	case ZSYSTEMERROR:
		return SPOKE_ENOMEM;
	default:
		return SPOKE_ESERVER;
	}
}
